//! `shell`: a line of `sh` in the working folder.
//!
//! Nothing confines it but the user it runs as: an agent that may call it can do what that user can. It gets the
//! environment of the agent's step, reads nothing, and ends as a group.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::arguments::Arguments;
use crate::io::process::capture_output;
use crate::types::cancel::Cancel;
use crate::types::secrets::Secrets;

/// How long a line runs unless the call says otherwise, and at most, in seconds.
const USUAL: u64 = 60;
const MOST: u64 = 600;

/// What it takes to end a group that does not go at once.
pub(super) const ENDING: Duration = Duration::from_secs(15);

/// The bytes of its output that are kept: the last ones.
const KEPT: usize = 1024 * 1024;

/// The longest line, in bytes.
const LONGEST: usize = 64 * 1024;

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellCall {
    command: String,
    pub most: Duration,
}

pub(super) fn read_call(mut arguments: Arguments) -> Result<ShellCall, String> {
    let command = arguments.text("command")?;
    let seconds = arguments.number("seconds", (1, MOST), USUAL)?;
    arguments.finish()?;
    if command.trim().is_empty() {
        return Err("`command` of `shell` is empty".to_owned());
    }
    if command.len() > LONGEST || command.contains('\0') {
        return Err(format!("`command` of `shell` must be text of at most {LONGEST} bytes"));
    }
    Ok(ShellCall { command, most: Duration::from_secs(seconds) })
}

/// Runs the line. That it fails is a result like any other: the model reads why. Secrets are left out of what it prints.
pub(super) fn run(
    asked: &ShellCall,
    environment: &[(OsString, OsString)],
    folder: &Path,
    (secrets, cancel): (&Secrets, &Cancel),
) -> Result<String, String> {
    let argv = ["/bin/sh", "-c", &asked.command].map(OsString::from);
    // A secret at the place where the output is cut must be seen whole.
    let kept = KEPT + secrets.longest();
    let printed = capture_output(&argv, environment, folder, asked.most, kept, cancel)?;
    if printed.cancelled {
        return Err("the command was ended, since the run no longer waits for it".to_owned());
    }
    let text = String::from_utf8_lossy(&printed.text);
    let cut = text.ceil_char_boundary(text.len().saturating_sub(KEPT));
    let text = secrets.redact_part(&text, cut..text.len());
    let mut notes = Vec::new();
    if printed.too_long {
        notes.push(format!("ended after {} seconds: give it more with `seconds`, or less to do", asked.most.as_secs()));
    } else if printed.exit != 0 {
        notes.push(format!("exit code {}", printed.exit));
    } else if text.trim().is_empty() {
        notes.push("exit code 0, nothing printed".to_owned());
    }
    if printed.is_cut || cut > 0 {
        notes.push(format!("only the last {KEPT} bytes of the output"));
    }
    let notes = notes.iter().map(|note| format!("[{note}]\n")).collect::<String>();
    Ok(format!("{notes}{text}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn runs(value: Value) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let environment = [("PATH".into(), "/usr/bin:/bin".into()), ("WORD".into(), "given".into())];
        let asked = read_call(Arguments::new("shell", value.as_object().unwrap().clone()))?;
        let secrets = Secrets::new(&[("KEY".into(), "s3cr3t".into())].into(), &["KEY"].into());
        run(&asked, &environment, folder.path(), (&secrets, &Cancel::default()))
    }

    #[test]
    fn a_line_runs_with_the_environment_it_is_given_and_nothing_else() {
        assert_eq!(runs(json!({"command": "echo $WORD; echo to stderr >&2"})).unwrap(), "given\nto stderr");
        assert_eq!(runs(json!({"command": "env | grep -c CARGO"})).unwrap(), "[exit code 1]\n0");
        assert_eq!(runs(json!({"command": "cat"})).unwrap(), "[exit code 0, nothing printed]");
        assert_eq!(runs(json!({"command": "printf '\\377'; exit 3"})).unwrap(), "[exit code 3]\n\u{fffd}");
        assert_eq!(runs(json!({"command": " "})).unwrap_err(), "`command` of `shell` is empty");
        assert!(runs(json!({"command": "x", "seconds": 601})).unwrap_err().contains("from 1 to 600"));
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_that_it_started() {
        let told = runs(json!({"command": "sleep 300 & echo $!; sleep 300", "seconds": 1})).unwrap();
        let (note, pid) = told.split_once('\n').unwrap();
        assert!(note.starts_with("[ended after 1 seconds"), "{note}");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }

    #[test]
    fn of_endless_output_the_end_is_kept() {
        let told = runs(json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"})).unwrap();
        assert!(told.starts_with("[only the last 1048576 bytes of the output]\nxxx") && told.ends_with("\nend"));
    }

    #[test]
    fn of_a_secret_at_the_cut_no_part_is_kept() {
        for after in KEPT - 5..KEPT {
            let told =
                runs(json!({"command": format!("printf s3cr3t; head -c {after} /dev/zero | tr '\\0' x")})).unwrap();
            let (note, rest) = told.split_once('\n').unwrap();
            assert_eq!(note, "[only the last 1048576 bytes of the output]");
            assert!(rest.starts_with("⟦secret:KEY⟧xxx"), "{}", &rest[..40]);
        }
    }
}
