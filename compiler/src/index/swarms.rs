//! The names of swarms: their leaders, members, channels, worktrees and plan items.
//!
//! In: the swarms of a model. Out: their symbols, and of each item its owner and what it waits for.

use super::build::{Builder, Local};
use super::{PlanItem, SymbolId, SymbolKind};
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
                    self.describe(id, text.as_str().to_owned());
                }
            }
            for channel in &swarm.ast.channels {
                let id = self.add_local(SymbolKind::Channel, Local::Channel, &channel.name, home);
                let others = if channel.open { "; other agents may join" } else { "" };
                self.describe(id, format!("Members {}{others}", list_names(&channel.members)));
            }
            for tree in &swarm.ast.worktrees {
                let id = self.add_local(SymbolKind::Worktree, Local::Worktree, &tree.name, home);
                let members = format!("Members {}", list_names(&tree.members));
                let manager = tree.manager.as_ref().map(|name| format!("`{}` merges it", name.value));
                let into = tree.into.as_ref().map(|branch| format!(" into `{}`", branch.value));
                let checked = (!tree.checks.is_empty()).then(|| " when its checks pass".to_owned());
                let merged = [manager, into, checked].into_iter().flatten().collect::<String>();
                self.describe(id, format!("{members}\n\n{merged}"));
            }
            // Only now: an item may wait for one that stands behind it.
            for item in &swarm.ast.items {
                let find = |local: Local, name: &Name| self.find_local(home?, local, &name.value);
                let Some(symbol) = find(Local::Item, &item.name) else { continue };
                let owner = item.owner.as_ref().and_then(|owner| find(Local::Member, owner));
                let needs = item.needs.iter().filter_map(|need| find(Local::Item, need)).collect();
                self.index.items.push(PlanItem { symbol, owner, needs });
            }
        }
    }

    fn describe(&mut self, id: SymbolId, doc: String) {
        self.index.symbols[id.0 as usize].doc = Some(doc);
    }
}

fn list_names(names: &[Name]) -> String {
    names.iter().map(|name| format!("`{}`", name.value)).collect::<Vec<_>>().join(", ")
}
