//! Where the page of each rule lies, asked once; nothing for editors that open none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gen_lsp_types::CodeDescription;
use swarmc_compiler::Code;

use super::convert;
use crate::disk::Disk;

/// The pages that an editor can open.
pub(super) struct Pages {
    disk: Option<Arc<dyn Disk>>,
    known: Mutex<BTreeMap<Code, Option<CodeDescription>>>,
}

impl Pages {
    /// The pages on a disk; `wanted` says whether the editor opens what a diagnostic links to.
    pub(super) fn new(disk: &Arc<dyn Disk>, wanted: bool) -> Pages {
        Pages { disk: wanted.then(|| Arc::clone(disk)), known: Mutex::default() }
    }

    /// The link to the page of a rule.
    pub(super) fn rule_link(&self, code: Code) -> Option<CodeDescription> {
        let disk = self.disk.as_ref()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let link = || disk.rule_page(code).map(|path| CodeDescription { href: convert::to_uri(&path) });
        known.entry(code).or_insert_with(link).clone()
    }
}
