//! Parameters of a run: what was given, checked against what is declared, before anything starts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use miette::miette;
use serde_json::Value;
use swarmc_plan::{Param, ParamType, Schema};
use swarmc_view::did_you_mean;

/// The most that a file with values may hold, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// What was given on the command line and in a file; the command line wins.
pub(crate) fn collect_params(
    flags: &[(String, String)],
    file: Option<&Path>,
) -> miette::Result<BTreeMap<String, String>> {
    let mut given = file.map(read_params).transpose()?.unwrap_or_default();
    let mut seen = BTreeMap::new();
    for (name, value) in flags {
        if let Some(earlier) = seen.insert(name, value) {
            return Err(miette!("`--param {name}` is given twice: `{earlier}` and `{value}`"));
        }
        given.insert(name.clone(), value.clone());
    }
    Ok(given)
}

/// The value of every parameter in its textual form: what is given, else what its variable of the environment holds, else
/// its default; optional ones without a value are left out.
/// Relative paths count from `current`, those of defaults from the workspace; `types` are those of the plan.
pub(crate) fn resolve_params<'a>(
    declared: impl Iterator<Item = &'a Param>,
    given: &BTreeMap<String, String>,
    types: &BTreeMap<String, Schema>,
    (current, workspace): (&Path, &Path),
    environment: fn(&str) -> Option<String>,
) -> miette::Result<BTreeMap<String, String>> {
    // A pipeline's own parameter stands before the workflow's of the same name.
    let declared: BTreeMap<&str, &Param> = declared.map(|param| (param.name.as_str(), param)).collect();
    let mut problems = Vec::new();
    for name in given.keys().filter(|name| !declared.contains_key(name.as_str())) {
        let help = did_you_mean(name, declared.keys().copied());
        problems.push(format!("there is no parameter `{name}`: {help}"));
    }
    let mut values = BTreeMap::new();
    for (name, param) in &declared {
        let default = || Some((param.default.clone()?, workspace));
        let variable = || Some((environment(param.env.as_ref()?)?, current));
        match given.get(*name).map(|text| (text.clone(), current)).or_else(variable).or_else(default) {
            Some((text, folder)) => match parse_value(param, types, &text, folder) {
                Ok(value) => _ = values.insert((*name).to_owned(), value),
                Err(problem) => problems.push(problem),
            },
            None if param.optional => {}
            None => problems.push(describe_missing(param, types)),
        }
    }
    match problems.len() {
        0 => Ok(values),
        _ => Err(miette!("{}", problems.join("\n  "))),
    }
}

/// What a variable of the environment holds; an empty one holds nothing.
pub(crate) fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn describe_missing(param: &Param, types: &BTreeMap<String, Schema>) -> String {
    let about = param.description.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    let (name, value) = (&param.name, example_value(&param.kind, types));
    let variable = param.env.as_ref().map(|env| format!(", or set `{env}`")).unwrap_or_default();
    format!("parameter `{name}`{about} is missing: add `--param {name}={value}`{variable}")
}

fn example_value<'a>(kind: &'a ParamType, types: &'a BTreeMap<String, Schema>) -> &'a str {
    match kind {
        ParamType::String => "TEXT",
        ParamType::Int => "NUMBER",
        ParamType::Float => "NUMBER",
        ParamType::Bool => "true",
        ParamType::File => "FILE",
        ParamType::Dir => "DIR",
        // The first word of an enum shows how all of them are written.
        ParamType::Json(schema) => find_word(schema, types).unwrap_or("@FILE.json"),
    }
}

fn find_word<'a>(schema: &'a Schema, types: &'a BTreeMap<String, Schema>) -> Option<&'a str> {
    let name = schema.0.get("$ref").and_then(|path| path.as_str()?.strip_prefix("#/$defs/"));
    let schema = name.and_then(|name| types.get(name)).unwrap_or(schema);
    schema.0.get("enum")?.get(0)?.as_str()
}

fn parse_value(param: &Param, types: &BTreeMap<String, Schema>, text: &str, current: &Path) -> Result<String, String> {
    let name = &param.name;
    let wrong = |wanted: &str| Err(format!("parameter `{name}` takes {wanted}, and `{text}` is not one"));
    match &param.kind {
        ParamType::String => Ok(text.to_owned()),
        ParamType::Int => match text.trim().parse::<i64>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => wrong("a whole number of 64 bits"),
        },
        ParamType::Float => match text.trim().parse::<f64>() {
            // Rust also reads `inf` and `NaN`, which JSON does not have.
            Ok(number) if number.is_finite() => Ok(text.trim().to_owned()),
            _ => wrong("a finite number"),
        },
        ParamType::Bool => match text.trim() {
            word @ ("true" | "false") => Ok(word.to_owned()),
            _ => Err(format!("parameter `{name}` is `true` or `false`, not `{text}`")),
        },
        ParamType::File => parse_path(name, text, current, "file", Path::is_file),
        ParamType::Dir => parse_path(name, text, current, "folder", Path::is_dir),
        ParamType::Json(schema) => {
            // No JSON begins with this sign.
            let file = text.strip_prefix('@').map(|file| read_text(&current.join(file))).transpose();
            let file = file.map_err(|problem| format!("parameter `{name}`: {problem}"))?;
            swarmc_runtime::parse_typed(schema, types, file.as_deref().unwrap_or(text))
                .map_err(|wrong| format!("parameter `{name}` is not of its type: {}", wrong.join("; ")))
        }
    }
}

/// The text of a file with values, which is of a bounded size.
fn read_text(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let mut bytes = Vec::new();
    // The length that a pipe reports is 0, so the limit holds for what is read.
    File::open(file)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("`{shown}` is larger than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|error| format!("cannot read `{shown}`: {error}"))
}

fn parse_path(name: &str, text: &str, current: &Path, what: &str, fits: fn(&Path) -> bool) -> Result<String, String> {
    let path = current.join(text);
    if text.is_empty() || !fits(&path) {
        let found = if path.exists() { format!("`{text}` is something else") } else { format!("there is no `{text}`") };
        return Err(format!("parameter `{name}` names a {what}, and {found}"));
    }
    match std::path::absolute(&path).ok().and_then(|path| path.into_os_string().into_string().ok()) {
        Some(path) => Ok(path),
        None => Err(format!("parameter `{name}`: the path `{text}` is not UTF-8")),
    }
}

/// One object; its values in their textual form.
fn read_params(file: &Path) -> miette::Result<BTreeMap<String, String>> {
    let shown = file.display();
    let text = read_text(file).map_err(|problem| miette!("{problem}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| miette!("`{shown}` is not JSON: {error}"))?;
    let Value::Object(object) = value else {
        return Err(miette!("`{shown}` is not a JSON object with a value for each parameter"));
    };
    let mut given = BTreeMap::new();
    for (name, value) in object {
        match value {
            // As if it were left out: no parameter has a value `null`.
            Value::Null => {}
            Value::String(text) => _ = given.insert(name, text),
            other => _ = given.insert(name, other.to_string()),
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, kind: ParamType, default: Option<&str>) -> Param {
        Param {
            name: name.to_owned(),
            kind,
            optional: false,
            default: default.map(str::to_owned),
            env: None,
            description: None,
            origin: swarmc_plan::Origin::default(),
        }
    }

    fn check(params: &[Param], given: &[(&str, &str)]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "").unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("b.txt"), "").unwrap();
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let root = folder.path().display().to_string();
        match resolve_params(params.iter(), &given, &BTreeMap::new(), (folder.path(), &work), |name| {
            (name == "PLACE").then(|| "from the variable".to_owned())
        }) {
            Ok(values) => Ok(values.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>()),
            Err(error) => Err(error.to_string()),
        }
        .map(|text| text.replace(&root, "ROOT").trim_end().to_owned())
    }

    #[test]
    fn values_have_the_declared_type() {
        use ParamType::*;
        let ok = |kind, text: &str| check(&[param("p", kind, None)], &[("p", text)]);
        assert_eq!(ok(String, " any = text"), Ok("p= any = text".to_owned()));
        assert_eq!(ok(Int, "-007"), Ok("p=-7".to_owned()));
        assert_eq!(ok(Float, "1e3"), Ok("p=1e3".to_owned()));
        assert_eq!(ok(Bool, "true"), Ok("p=true".to_owned()));
        assert_eq!(ok(File, "a.txt"), Ok("p=ROOT/a.txt".to_owned()));
        assert_eq!(ok(Dir, "."), Ok("p=ROOT".to_owned()));
        let wrong = "parameter `p` takes a whole number of 64 bits, and `1.5` is not one";
        assert_eq!(ok(Int, "1.5"), Err(wrong.to_owned()));
        assert!(ok(Float, "inf").is_err());
        assert_eq!(ok(Bool, "yes"), Err("parameter `p` is `true` or `false`, not `yes`".to_owned()));
        assert_eq!(ok(File, "b.txt"), Err("parameter `p` names a file, and there is no `b.txt`".to_owned()));
        assert_eq!(ok(Dir, "a.txt"), Err("parameter `p` names a folder, and `a.txt` is something else".to_owned()));
    }

    #[test]
    fn values_of_other_types_are_held_against_them() {
        let schema = |schema| ParamType::Json(Schema(schema));
        let words = || schema(serde_json::json!({ "enum": ["low", "high"] }));
        let list = || schema(serde_json::json!({ "type": "array", "items": { "type": "integer" } }));
        let given = |kind, text: &str| check(&[param("p", kind, None)], &[("p", text)]);
        assert_eq!(given(words(), "low"), Ok("p=\"low\"".to_owned()));
        assert_eq!(given(words(), "\"low\""), Ok("p=\"low\"".to_owned()));
        assert_eq!(given(list(), "[1, 2]"), Ok("p=[1,2]".to_owned()));
        for (kind, text) in [(words(), "middle"), (list(), "[\"a\"]"), (list(), "1,2")] {
            let told = given(kind, text).unwrap_err();
            assert!(told.contains("parameter `p` is not of its type: "), "{told}");
        }
    }

    #[test]
    fn an_enum_that_is_missing_shows_one_of_its_words() {
        let words = ParamType::Json(Schema(serde_json::json!({ "enum": ["low", "high"] })));
        let missing = "parameter `p` is missing: add `--param p=low`";
        assert_eq!(check(&[param("p", words, None)], &[]), Err(missing.to_owned()));
        let list = ParamType::Json(Schema(serde_json::json!({ "type": "array", "items": { "type": "integer" } })));
        let missing = "parameter `p` is missing: add `--param p=@FILE.json`";
        assert_eq!(check(&[param("p", list, None)], &[]), Err(missing.to_owned()));
    }

    #[test]
    fn what_is_not_given_is_read_from_the_environment() {
        let of = |env: &str, default| Param { env: Some(env.to_owned()), ..param("p", ParamType::String, default) };
        assert_eq!(check(&[of("PLACE", Some("x"))], &[]), Ok("p=from the variable".to_owned()));
        assert_eq!(check(&[of("PLACE", None)], &[("p", "given")]), Ok("p=given".to_owned()));
        assert_eq!(check(&[of("OTHER", Some("x"))], &[]), Ok("p=x".to_owned()));
        let missing = "parameter `p` is missing: add `--param p=TEXT`, or set `OTHER`";
        assert_eq!(check(&[of("OTHER", None)], &[]), Err(missing.to_owned()));
    }

    #[test]
    fn a_list_is_read_from_a_file() {
        let list = || ParamType::Json(Schema(serde_json::json!({ "type": "array", "items": { "type": "integer" } })));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.json");
        std::fs::write(&file, "[1, 2]").unwrap();
        let given = format!("@{}", file.display());
        assert_eq!(check(&[param("p", list(), None)], &[("p", &given)]), Ok("p=[1,2]".to_owned()));
        std::fs::write(&file, "[1,").unwrap();
        assert!(check(&[param("p", list(), None)], &[("p", &given)]).is_err());
        let missing = check(&[param("p", list(), None)], &[("p", "@none.json")]).unwrap_err();
        assert!(missing.starts_with("parameter `p`: cannot read `") && missing.contains("/none.json`"), "{missing}");
    }

    #[test]
    fn paths_of_defaults_count_from_the_workspace() {
        let default = |kind, text| check(&[param("p", kind, Some(text))], &[]);
        assert_eq!(default(ParamType::File, "b.txt"), Ok("p=ROOT/work/b.txt".to_owned()));
        assert_eq!(default(ParamType::Dir, "."), Ok("p=ROOT/work".to_owned()));
        assert!(default(ParamType::File, "a.txt").is_err());
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let params = [param("goal", ParamType::String, None), param("count", ParamType::Int, Some("3"))];
        assert_eq!(check(&params, &[("goal", "g")]), Ok("count=3 goal=g".to_owned()));
        let problems = check(&params, &[("gaol", "g"), ("count", "x")]).unwrap_err();
        assert!(problems.contains("there is no parameter `gaol`: did you mean `goal`?"), "{problems}");
        assert!(problems.contains("parameter `goal` is missing: add `--param goal=TEXT`"), "{problems}");
        assert!(problems.contains("`x` is not one"), "{problems}");
    }

    #[test]
    fn a_file_gives_values_and_the_command_line_wins() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("params.json");
        std::fs::write(&file, r#"{ "a": "text", "b": 3, "c": true, "d": null, "e": [1] }"#).unwrap();
        let given = collect_params(&[("a".to_owned(), "flag".to_owned())], Some(&file)).unwrap();
        let shown: Vec<String> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["a=flag", "b=3", "c=true", "e=[1]"]);
        for wrong in ["[]", "{"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(super::collect_params(&[], Some(&file)).is_err());
        }
    }

    #[test]
    fn a_flag_may_not_stand_twice() {
        let twice = [("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())];
        assert!(collect_params(&twice, None).is_err());
    }
}
