//! SW101: a tool of a server that is not declared and whose name is nearly that of one that is.
//!
//! Agent programs have servers and tools of their own, so a name that is like none of the spec says nothing wrong.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::Model;
use crate::suggest;
use crate::trust::powers::server_of;

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let known: Vec<&str> = model.spec.tool_servers.iter().map(|server| server.name.value.as_str()).collect();
    if known.is_empty() {
        return;
    }
    for agent in &model.agents {
        for tool in agent.ast.tools.iter().flat_map(|tools| &tools.names) {
            let server = server_of(&tool.value);
            // A bare name is a tool of the agent's own; `server.tool` and `mcp__server__tool` are not.
            let qualified = server != tool.value && !tool.value.contains('(');
            if !qualified || known.contains(&server) {
                continue;
            }
            let Some(close) = suggest::closest(server, known.iter().copied()) else { continue };
            let written = tool.value.replacen(server, close, 1);
            let declared = model.spec.tool_servers.iter().find(|server| server.name.value == close);
            let diagnostic = Diagnostic::new(Code::UnknownReference, format!("there is no tool server `{server}`"))
                .label(tool.span, "a tool of a server that is not declared");
            let diagnostic = match declared {
                Some(declared) => diagnostic.label(declared.name.span, "declared here"),
                None => diagnostic,
            };
            diagnostics.push(diagnostic.help(format!("did you mean `{written}`?")).unsafe_fix(
                format!("write `{written}`"),
                tool.span,
                written,
            ));
        }
    }
}
