//! SW309, SW310: an agent of a coordinated swarm that does the work of another role.
//!
//! In: a swarm whose names are resolved. Out: managers that own items, so that the merges wait for them, and coordinators
//! that do the work themselves, so that the plan does.

use swarmc_plan::Capability;

use crate::ast::{Item, Leader};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Swarm};

/// The codes that it reports.
pub(super) const CODES: &[Code] = &[Code::ManagerWorks, Code::CoordinatorWorks];

pub(super) fn check(model: &Model<'_>, swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    let Some(coordinator) = swarm.ast.coordinator() else { return };
    check_managers(swarm, diagnostics);
    for item in &swarm.ast.items {
        diagnostics.extend(report_own_item(swarm, coordinator, item));
    }
    diagnostics.extend(report_writing_coordinator(model, swarm, coordinator));
}

/// Managers that are busy with an item when there is something to merge.
fn check_managers(swarm: &Swarm<'_>, diagnostics: &mut Diagnostics) {
    for tree in &swarm.ast.worktrees {
        let Some(manager) = &tree.manager else { continue };
        let owners = swarm.ast.items.iter().filter_map(|item| Some((item, item.owner.as_ref()?)));
        let Some((item, owner)) = owners.into_iter().find(|(_, owner)| owner.value == manager.value) else { continue };
        diagnostics.push(
            Diagnostic::new(
                Code::ManagerWorks,
                format!(
                    "manager `{}` of worktree `{}` also does item `{}`, and merges nothing meanwhile",
                    manager.value, tree.name.value, item.name.value
                ),
            )
            .label(owner.span, "its item")
            .label(manager.span, "integrates the work of the others")
            .help("give the item to a member of the worktree, or let another agent be the `manager`"),
        );
    }
}

fn report_own_item(swarm: &Swarm<'_>, coordinator: &Leader, item: &Item) -> Option<Diagnostic> {
    let owner = item.owner.as_ref().filter(|owner| owner.value == coordinator.name.value)?;
    let message = format!("coordinator `{}` does item `{}` itself", owner.value, item.name.value);
    let diagnostic = Diagnostic::new(Code::CoordinatorWorks, message)
        .label(owner.span, "decides nothing meanwhile")
        .label(coordinator.name.span, "the coordinator");
    Some(match swarm.ast.members.first() {
        Some(member) => diagnostic.help(format!("write `owner={}`, or leave `owner=` out", member.name.value)),
        None => diagnostic.help("leave `owner=` out: the coordinator assigns the item to a member"),
    })
}

fn report_writing_coordinator(model: &Model<'_>, swarm: &Swarm<'_>, coordinator: &Leader) -> Option<Diagnostic> {
    let agent = model.agents.get(swarm.leader?)?.ast;
    let can = agent.can.iter().find(|can| can.value == Capability::WriteFiles)?;
    let (name, plays) = (&coordinator.name.value, &agent.name.value);
    let members = swarm.members.iter().map(|member| member.agent).chain(swarm.groups.iter().copied());
    let is_shared = members.flatten().any(|member| Some(member) == swarm.leader);
    let help = match is_shared {
        true => format!("give it an agent of its own that cannot write: `coordinator {name} agent=NAME`"),
        false => format!("take `write-files` out of the `can` of agent `{plays}`: the members write"),
    };
    Some(
        Diagnostic::new(
            Code::CoordinatorWorks,
            format!("coordinator `{name}` can write files, so it may do the work itself"),
        )
        .label(coordinator.name.span, format!("plays agent `{plays}`"))
        .label(can.span, "may write")
        .help(help),
    )
}
