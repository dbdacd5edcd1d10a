//! Whether changes of a plan apply: names that exist, no circle, no item taken away on which its owner works.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Item, ItemState, OPS, PlanOp, TeamPlan};

impl TeamPlan {
    /// Whether these changes apply to the plan as it is now, one after the other. `is_agent` is true of the names of
    /// agents that can own an item, and the plan may have `limit` items.
    ///
    /// # Errors
    /// One does not apply: a sentence that says which, why, and what to write instead.
    pub fn check_ops(&self, ops: &[PlanOp], is_agent: impl Fn(&str) -> bool, limit: u32) -> Result<(), String> {
        if ops.is_empty() {
            return Err("`ops` is empty: name at least one change".to_owned());
        }
        if ops.len() > OPS {
            return Err(format!("`ops` has {} changes and may have {OPS}: make several updates", ops.len()));
        }
        let mut next = self.clone();
        for op in ops {
            next.check_op(op, &is_agent, limit).map_err(|why| format!("`{}`: {why}", op.describe()))?;
            next.apply_op(op);
        }
        Ok(())
    }

    fn check_op(&self, op: &PlanOp, is_agent: impl Fn(&str) -> bool, limit: u32) -> Result<(), String> {
        match op {
            PlanOp::Add { item, owner, depends_on, .. } => {
                if self.item(item).is_some() {
                    return Err("the plan has an item of this name: choose another name, or use `edit`".to_owned());
                }
                if self.items.len() >= limit as usize {
                    return Err(format!("the plan has {limit} items, which is the limit: remove one first"));
                }
                if let Some(owner) = owner.as_deref().filter(|owner| !is_agent(owner)) {
                    return Err(format!("`{owner}` is no agent that works: leave `owner` out, or name another one"));
                }
                match depends_on.iter().find(|on| **on == *item) {
                    Some(_) => Err("an item cannot wait for itself".to_owned()),
                    None => depends_on.iter().try_for_each(|on| self.find(on).map(|_| ())),
                }
            }
            PlanOp::Edit { item, .. } => match self.find(item)?.state {
                ItemState::Done => Err("it is done: add another item".to_owned()),
                _ => Ok(()),
            },
            PlanOp::Remove { item } => {
                let item = self.find(item)?;
                if item.state == ItemState::Running {
                    let owner = item.owner.as_deref().unwrap_or("its owner");
                    return Err(format!("{owner} works on it: stop {owner} first, or wait"));
                }
                match self.items.iter().find(|other| other.depends_on.contains(&item.name)) {
                    Some(user) => Err(format!("`{}` waits for it: unlink that first", user.name)),
                    None => Ok(()),
                }
            }
            PlanOp::Link { item, on } => {
                let (item, on) = (self.find(item)?, self.find(on)?);
                if item.state == ItemState::Running || item.state == ItemState::Done {
                    return Err("it has begun, so it waits for nothing any more".to_owned());
                }
                match self.reaches(on, &item.name) {
                    true => {
                        Err(format!("`{}` waits for `{}` already: they would wait for each other", on.name, item.name))
                    }
                    false => Ok(()),
                }
            }
            PlanOp::Unlink { item, on } => match self.find(item)?.depends_on.contains(on) {
                true => Ok(()),
                false => Err("it does not wait for that".to_owned()),
            },
        }
    }

    fn find(&self, name: &str) -> Result<&Item, String> {
        self.item(name).ok_or_else(|| {
            let words: String = name.chars().take(swarmc_plan::LONGEST_NAME).collect();
            let known: Vec<&str> = self.items.iter().map(|item| &*item.name).take(20).collect();
            match known.is_empty() {
                true => format!("the plan has no item `{words}`: it has none at all"),
                false => format!("the plan has no item `{words}`: it has {}", known.join(", ")),
            }
        })
    }

    /// Whether `from` is `to`, or waits for it, directly or by others.
    fn reaches(&self, from: &Item, to: &Arc<str>) -> bool {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(item) = open.pop() {
            if item.name == *to {
                return true;
            }
            if seen.insert(&item.name) {
                open.extend(item.depends_on.iter().filter_map(|on| self.item(on)));
            }
        }
        false
    }
}
