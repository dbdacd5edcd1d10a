//! A request as a test wants to see it: who asked, and the texts in it, whatever the protocol.

use std::collections::BTreeMap;

use serde_json::Value;

/// One request that reached the endpoint.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which protocol it spoke; `None` for anything that asks no model.
    pub protocol: Option<Protocol>,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body; null where it is empty or not JSON.
    pub body: Value,
    /// The system text: instructions, system and developer messages.
    pub system: String,
    /// The texts of the user's messages, oldest first.
    pub user: Vec<String>,
    /// The results of tool calls, oldest first.
    pub results: Vec<String>,
    /// The names of the tools that the client offers.
    pub tools: Vec<String>,
}

/// The protocols that the endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Gemini, streamed only.
    Gemini,
}

impl Request {
    /// Whether the client wants the answer as a stream of events.
    pub fn streams(&self) -> bool {
        self.body["stream"] == true || self.protocol == Some(Protocol::Gemini)
    }

    /// The model it asks for.
    pub fn model(&self) -> &str {
        let of_path = || self.path.rsplit('/').next()?.strip_suffix(":streamGenerateContent");
        self.body["model"].as_str().or_else(of_path).unwrap_or("")
    }

    pub(crate) fn read(method: String, path: String, headers: BTreeMap<String, String>, body: &[u8]) -> Request {
        let protocol = match path.as_str() {
            "/v1/chat/completions" => Some(Protocol::Chat),
            "/v1/responses" => Some(Protocol::Responses),
            "/v1/messages" => Some(Protocol::Messages),
            path if path.ends_with(":streamGenerateContent") => Some(Protocol::Gemini),
            _ => None,
        };
        let mut request = Request {
            protocol,
            method,
            path,
            headers,
            body: serde_json::from_slice(body).unwrap_or_default(),
            system: String::new(),
            user: Vec::new(),
            results: Vec::new(),
            tools: Vec::new(),
        };
        request.extract();
        request
    }

    /// The bytes of every text in the request: the measure of its usage.
    pub(crate) fn size(&self) -> usize {
        let texts = self.user.iter().chain(&self.results);
        self.system.len() + texts.map(String::len).sum::<usize>()
    }

    fn extract(&mut self) {
        let body = std::mem::take(&mut self.body);
        for key in ["instructions", "system"] {
            self.add_system(text_of(&body[key]));
        }
        if let Some(input) = body["input"].as_str() {
            self.user.push(input.to_owned());
        }
        for key in ["messages", "input"] {
            for message in items(&body[key]) {
                self.add_message(message);
            }
        }
        self.add_system(text_of(&body["systemInstruction"]["parts"]));
        for content in items(&body["contents"]) {
            self.add_content(content);
        }
        for tool in items(&body["tools"]) {
            let declared = items(&tool["functionDeclarations"]).iter();
            self.tools.extend(declared.filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
            // Chat nests the definition; responses group the tools of a server in a namespace.
            let nested = items(&tool["tools"]);
            if nested.is_empty() {
                let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
                self.tools.extend(name.map(str::to_owned));
            }
            let names = nested.iter().filter_map(|tool| tool["name"].as_str());
            self.tools.extend(names.map(str::to_owned));
        }
        self.body = body;
    }

    fn add_message(&mut self, message: &Value) {
        match (message["role"].as_str(), message["type"].as_str()) {
            (Some("system" | "developer"), _) => self.add_system(text_of(&message["content"])),
            (Some("tool"), _) => self.results.push(text_of(&message["content"])),
            (Some("user"), _) => {
                let blocks = items(&message["content"]).iter();
                let results = blocks.filter(|block| block["type"] == "tool_result");
                self.results.extend(results.map(|block| text_of(&block["content"])));
                let text = text_of(&message["content"]);
                if !text.is_empty() {
                    self.user.push(text);
                }
            }
            (None, Some("function_call_output" | "custom_tool_call_output")) => {
                self.results.push(text_of(&message["output"]));
            }
            _ => {}
        }
    }

    /// A content of Gemini's.
    fn add_content(&mut self, content: &Value) {
        let results = items(&content["parts"]).iter().map(|part| &part["functionResponse"]["response"]);
        self.results.extend(results.filter(|result| !result.is_null()).map(Value::to_string));
        let text = text_of(&content["parts"]);
        if content["role"] == "user" && !text.is_empty() {
            self.user.push(text);
        }
    }

    fn add_system(&mut self, text: String) {
        if !self.system.is_empty() && !text.is_empty() {
            self.system.push('\n');
        }
        self.system.push_str(&text);
    }
}

/// The text of a content: a string, or the texts of its parts, one a line.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = items(content).iter();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
