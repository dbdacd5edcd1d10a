//! The names of swarms: their leaders, members and plan items.
//!
//! In: the swarms of a model. Out: their symbols, and of each item its owner and what it waits for.

use super::build::{Builder, Local};
use super::{PlanItem, SymbolKind};
use crate::ast::Name;
use crate::symbols::NameKind;

impl Builder<'_, '_, '_> {
    pub(super) fn add_swarms(&mut self) {
        let model = self.model;
        for (number, swarm) in model.swarms.iter().enumerate() {
            let home = self.top_symbol(NameKind::Swarm, number);
            for name in swarm.ast.leader.iter().map(|leader| &leader.name) {
                self.add_local(SymbolKind::Member, Local::Member, name, home);
            }
            for name in swarm.ast.members.iter().map(|member| &member.name) {
                self.add_local(SymbolKind::Member, Local::Member, name, home);
            }
            for item in &swarm.ast.items {
                let id = self.add_local(SymbolKind::Item, Local::Item, &item.name, home);
                if let Some(text) = &item.text {
                    self.index.symbols[id.0 as usize].doc = Some(text.as_str().to_owned());
                }
            }
            for item in &swarm.ast.items {
                let find = |local: Local, name: &Name| self.find_local(home?, local, &name.value);
                let Some(symbol) = find(Local::Item, &item.name) else { continue };
                let owner = item.owner.as_ref().and_then(|owner| find(Local::Member, owner));
                let needs = item.needs.iter().filter_map(|need| find(Local::Item, need)).collect();
                self.index.items.push(PlanItem { symbol, owner, needs });
            }
        }
    }
}
