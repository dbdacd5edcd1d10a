//! Problems as SARIF 2.1.0, the form that code scanning services read.
//!
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>. Columns count characters, ends are exclusive; a
//! trace is a code flow; certain fixes and likely ones are both fixes, and say which they are.

use serde_json::{Value, json};
use swarmc_compiler::{Code, Diagnostic, Severity, Sources, Span};

use super::Problems;

/// One log with one run, for the problems of all specs.
pub(crate) fn build_log(results: Vec<Value>) -> Value {
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "swarmc",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": Code::ALL.iter().copied().map(rule_json).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

impl Problems {
    /// The results of one spec.
    pub(crate) fn render_sarif(&self) -> Vec<Value> {
        self.list.iter().map(|(severity, diagnostic)| result_json(&self.sources, *severity, diagnostic)).collect()
    }
}

fn rule_json(code: Code) -> Value {
    let page = code.page();
    let body = page.split_once("\n\n").map_or(page, |(_, body)| body);
    let first = body.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let sentence = first.split_inclusive(". ").next().unwrap_or(&first).trim_end();
    json!({
        "id": code.id(),
        "name": code.name(),
        "shortDescription": { "text": sentence },
        "fullDescription": { "text": first },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": severity_level(code.severity()) },
    })
}

fn severity_level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

fn result_json(sources: &Sources, severity: Severity, diagnostic: &Diagnostic) -> Value {
    let text = match &diagnostic.help {
        Some(help) => format!("{}\n{help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut result = json!({
        "ruleId": diagnostic.code.id(),
        "ruleIndex": Code::ALL.iter().position(|code| *code == diagnostic.code),
        "level": severity_level(severity),
        "message": { "text": text },
    });
    if let Some((first, others)) = diagnostic.labels.split_first() {
        result["locations"] = json!([location_json(sources, first.span, &first.text)]);
        if !others.is_empty() {
            let related = others.iter().enumerate().map(|(index, label)| {
                let mut related = location_json(sources, label.span, &label.text);
                related["id"] = json!(index + 1);
                related
            });
            result["relatedLocations"] = related.collect();
        }
    }
    if !diagnostic.trace.is_empty() {
        let steps =
            diagnostic.trace.iter().map(|step| json!({ "location": location_json(sources, step.span, &step.text) }));
        result["codeFlows"] = json!([{ "threadFlows": [{ "locations": steps.collect::<Vec<_>>() }] }]);
    }
    if let Some(fix) = &diagnostic.fix {
        let mut changes: Vec<(Span, Vec<Value>)> = Vec::new();
        for edit in &fix.edits {
            let replacement =
                json!({ "deletedRegion": region_json(sources, edit.span), "insertedContent": { "text": edit.text } });
            match changes.iter_mut().find(|(span, _)| span.file == edit.span.file) {
                Some((_, list)) => list.push(replacement),
                None => changes.push((edit.span, vec![replacement])),
            }
        }
        let changes = changes
            .into_iter()
            .map(|(span, list)| json!({ "artifactLocation": artifact_json(sources, span), "replacements": list }));
        let sure = if fix.certain { "" } else { " (a guess: look at it)" };
        result["fixes"] = json!([{
            "description": { "text": format!("{}{sure}", fix.title) },
            "artifactChanges": changes.collect::<Vec<_>>(),
        }]);
    }
    result
}

fn location_json(sources: &Sources, span: Span, text: &str) -> Value {
    json!({
        "physicalLocation": { "artifactLocation": artifact_json(sources, span), "region": region_json(sources, span) },
        "message": { "text": text },
    })
}

fn region_json(sources: &Sources, span: Span) -> Value {
    let (start, end) = (sources.position(span.file, span.start), sources.position(span.file, span.end));
    json!({ "startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column })
}

fn artifact_json(sources: &Sources, span: Span) -> Value {
    json!({ "uri": encode_uri(sources.name(span.file)) })
}

/// A path as a relative reference of RFC 3986, or as a `file:` address when it is absolute.
fn encode_uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_it_is_about() {
        for &code in Code::ALL {
            let rule = rule_json(code);
            let text = rule["shortDescription"]["text"].as_str().unwrap();
            assert!(text.ends_with('.') && text.len() > 20, "{}: {text}", code.id());
            assert!(!rule["fullDescription"]["text"].as_str().unwrap().contains("```"), "{}", code.id());
        }
    }

    #[test]
    fn paths_become_addresses() {
        assert_eq!(encode_uri("prompts/größe 1.md"), "prompts/gr%C3%B6%C3%9Fe%201.md");
        assert_eq!(encode_uri("../a%.kdl"), "../a%25.kdl");
        assert_eq!(encode_uri("/tmp/a.kdl"), "file:///tmp/a.kdl");
    }
}
