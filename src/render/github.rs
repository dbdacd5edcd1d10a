//! Problems as workflow commands of GitHub Actions, which shows them beside the lines of a change.
//!
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>: `%`, line breaks and, in
//! properties, `:` and `,` are escaped; columns hold for places on one line only. Ten of each kind are shown for a step, so the worst
//! come first.

use swarmc_compiler::{Diagnostic, Severity, Sources};

use super::Problems;

impl Problems {
    /// A command for each problem, with how bad it is: to be sorted by it.
    pub(crate) fn render_github(&self) -> Vec<(Severity, String)> {
        let command = |(severity, diagnostic): &(Severity, Diagnostic)| {
            (*severity, format_command(&self.sources, *severity, diagnostic))
        };
        self.list.iter().map(command).collect()
    }
}

fn format_command(sources: &Sources, severity: Severity, diagnostic: &Diagnostic) -> String {
    let kind = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "notice",
    };
    let mut properties = Vec::new();
    if let Some(span) = diagnostic.span() {
        let (start, end) = (sources.position(span.file, span.start), sources.position(span.file, span.end));
        properties.push(format!("file={}", escape_property(sources.name(span.file))));
        properties.push(format!("line={}", start.line));
        properties.push(format!("endLine={}", end.line));
        if start.line == end.line {
            properties.push(format!("col={}", start.column));
            properties.push(format!("endColumn={}", end.column));
        }
    }
    properties
        .push(format!("title={}", escape_property(&format!("{} {}", diagnostic.code.id(), diagnostic.code.name()))));
    let mut text = diagnostic.message.clone();
    if let Some(help) = &diagnostic.help {
        text.push_str("\nhelp: ");
        text.push_str(help);
    }
    format!("::{kind} {}::{}\n", properties.join(","), escape_data(&text))
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_would_end_at_is_escaped() {
        assert_eq!(escape_data("100%: a,\r\nb"), "100%25: a,%0D%0Ab");
        assert_eq!(escape_property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
    }
}
