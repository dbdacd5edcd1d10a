//! From an order to a program that can be started here: its environment, its files, and why it cannot be.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::io::process::{Launch, is_allowed};
use crate::types::engine::{Order, Variable};

/// The shortest value of a secret that is looked for in changes: shorter ones are in many texts by accident.
const SHORTEST: usize = 8;

/// The environment of a process.
///
/// # Errors
/// The worker has no such secret.
pub(super) fn build_environment(
    order: &Order,
    own: &BTreeMap<OsString, OsString>,
) -> Result<Vec<(OsString, OsString)>, String> {
    let mut environment: Vec<(OsString, OsString)> =
        own.iter().filter(|(name, _)| is_allowed(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, variable) in &order.environment {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        if !is_name {
            return Err(format!("`{}` is no name of a variable", name.escape_debug()));
        }
        let value = match (variable, own.get(OsStr::new(name))) {
            // No variable can hold a NUL.
            (Variable::Set(value), _) => OsString::from(value.replace('\0', "\u{fffd}")),
            (Variable::Passed | Variable::Secret, Some(value)) => value.clone(),
            (Variable::Passed, None) => continue,
            (Variable::Secret, None) => {
                return Err(format!("the secret variable `{name}` is not set: start this worker with it"));
            }
        };
        environment.push((OsString::from(name), value));
    }
    Ok(environment)
}

/// Looks whether the program of an order is there; one of the files of the process is looked for once they are.
///
/// # Errors
/// Says what is missing, and what to type.
pub(super) fn check_program(
    order: &Order,
    environment: &[(OsString, OsString)],
    directory: Option<&Path>,
) -> Result<(), String> {
    let argv: Vec<OsString> = order.argv.iter().map(OsString::from).collect();
    if argv.iter().any(|word| word.as_bytes().contains(&0)) {
        return Err("the command holds a NUL".to_owned());
    }
    let is_own = argv.first().is_some_and(|program| program.as_bytes().contains(&b'/'));
    if is_own && directory.is_none() {
        return Ok(());
    }
    let directory = directory.unwrap_or(Path::new("/"));
    Launch { argv: &argv, environment, directory, stdin: None, install: order.install.as_deref() }.check_program()
}

/// The folder that a process runs in, within its files.
///
/// # Errors
/// There is no such folder, or it lies elsewhere.
pub(super) fn find_directory(files: &Path, directory: &str) -> Result<PathBuf, String> {
    let shown = directory.escape_debug();
    let is_inside =
        Path::new(directory).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside || directory.contains('\0') {
        return Err(format!("the folder `{shown}` lies outside of its files"));
    }
    let missing = |error: std::io::Error| format!("its files have no folder `{shown}`: {error}");
    // Resolved: a link may lead elsewhere.
    let top = files.canonicalize().map_err(missing)?;
    let found = files.join(directory).canonicalize().map_err(missing)?;
    match found.starts_with(&top) && found.is_dir() {
        true => Ok(found),
        false => Err(format!("the folder `{shown}` lies outside of its files, or is none")),
    }
}

/// The secret variable of an order whose value `bytes` hold; none where they hold none.
pub(super) fn find_secret<'o>(order: &'o Order, own: &BTreeMap<OsString, OsString>, bytes: &[u8]) -> Option<&'o str> {
    let secrets = order.environment.iter().filter(|(_, variable)| *variable == Variable::Secret);
    let is_in = |name: &str| {
        let value = own.get(OsStr::new(name)).map(|value| value.as_bytes()).unwrap_or_default();
        value.len() >= SHORTEST && memchr::memmem::find(bytes, value).is_some()
    };
    secrets.map(|(name, _)| name.as_str()).find(|name| is_in(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::engine::Files;

    fn order(environment: &[(&str, Variable)]) -> Order {
        Order {
            argv: vec!["true".to_owned()],
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            directory: String::new(),
            stdin: None,
            talks: false,
            timeout_ms: None,
            idle_ms: None,
            orphan_ms: 1000,
            install: None,
            files: Files::default(),
            keeps_changes: false,
        }
    }

    fn own(variables: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    #[test]
    fn a_variable_passes_only_where_the_table_or_the_order_names_it() {
        let own = own(&[("PATH", "/bin"), ("LC_ALL", "C"), ("OTHER", "1"), ("WANTED", "2"), ("KEY", "secret value")]);
        let order = order(&[
            ("WANTED", Variable::Passed),
            ("ABSENT", Variable::Passed),
            ("KEY", Variable::Secret),
            ("DOOR", Variable::Set("there".to_owned())),
            ("NUL", Variable::Set("a\0b".to_owned())),
        ]);
        let found = build_environment(&order, &own).unwrap();
        let found: Vec<String> =
            found.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(found, ["LC_ALL=C", "PATH=/bin", "WANTED=2", "KEY=secret value", "DOOR=there", "NUL=a\u{fffd}b"]);
    }

    #[test]
    fn a_secret_that_is_not_there_and_a_name_that_is_none_are_refused() {
        let refuse = |name: &str, variable| build_environment(&order(&[(name, variable)]), &own(&[]));
        assert!(refuse("KEY", Variable::Secret).unwrap_err().contains("`KEY` is not set"));
        for name in ["", "A=B", "A\0"] {
            assert!(refuse(name, Variable::Set(String::new())).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_folder_stays_within_the_files() {
        let files = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(files.path().join("a/b")).unwrap();
        std::fs::write(files.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("/tmp", files.path().join("out")).unwrap();
        let top = files.path().canonicalize().unwrap();
        for (inside, found) in [("", top.clone()), (".", top.clone()), ("a/b", top.join("a/b"))] {
            assert_eq!(find_directory(files.path(), inside), Ok(found), "{inside}");
        }
        for outside in ["..", "a/../..", "/tmp", "out", "file", "absent", "a\0"] {
            assert!(find_directory(files.path(), outside).is_err(), "{outside:?}");
        }
    }

    #[test]
    fn the_value_of_a_secret_is_found_where_it_is_long_enough() {
        let own = own(&[("KEY", "0123456789"), ("SHORT", "123"), ("PLAIN", "abcdefgh")]);
        let order = order(&[("KEY", Variable::Secret), ("SHORT", Variable::Secret), ("PLAIN", Variable::Passed)]);
        assert_eq!(find_secret(&order, &own, b"+key = 0123456789\n"), Some("KEY"));
        assert_eq!(find_secret(&order, &own, b"+123 abcdefgh\n"), None);
    }
}
