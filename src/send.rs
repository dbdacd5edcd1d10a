//! `swarmc send`: a person writes to an agent of a running run, from another terminal or from a script.

use std::io::Read as _;

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::handoff::ENVELOPE_LIMIT;
use swarmc_runtime::{UserMessage, send_message};
use swarmc_view::check_receiver;

use crate::args::Send;
use crate::exit::Exit;
use crate::home::{find_home, read_past};
use crate::problem::to_report;
use crate::target::find_target;
use crate::terminal;

pub(crate) fn exec(args: &Send) -> miette::Result<Exit> {
    let target = find_target(&find_home()?, &[&args.run, &args.to], |_, _| false)?;
    let folder = target.folder;
    let mut words = target.rest.into_iter();
    let Some(to) = words.next() else {
        let help = format!("swarmc send {} STEP TEXT", folder.id);
        return Err(miette!(help = help, "name the step whose agent reads the message"));
    };
    check_receiver(&folder, &read_past(&folder)?.build_report()).map_err(to_report)?;
    let words: Vec<String> = words.chain(args.text.iter().cloned()).collect();
    let text = match words.join(" ") {
        text if text.is_empty() || text == "-" => {
            let mut text = String::new();
            // One byte too many is enough for the run to say so.
            let most = ENVELOPE_LIMIT as u64 + 1;
            std::io::stdin().lock().take(most).read_to_string(&mut text).into_diagnostic()?;
            text
        }
        text => text,
    };
    let message = UserMessage { to, text, interrupt: args.interrupt };
    let words = send_message(&folder, &message).into_diagnostic()?;
    terminal::eprint(format!("{words}\n"));
    Ok(Exit::Done)
}
