//! Serves a scripted endpoint for trying an agent by hand, and prints what reaches it.
//!
//! `cargo run -p swarmc-endpoint --example serve [PORT]`; stops with the terminal. Words in the
//! user's text choose the answer: `use-tool NAME JSON`, `fail-with CODE`, `hang`, `garbage`, `cut`.

use std::io::{self, Write as _};
use std::time::Duration;

use swarmc_endpoint::{Answer, Endpoint, Request, Script};

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let script = Script::new().decide(|request| Some(choose(request)));
    let endpoint = Endpoint::start_on(script, port.unwrap_or(0))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", endpoint.url())?;
    let mut seen = 0;
    loop {
        endpoint.wait_for(seen + 1, Duration::from_secs(1));
        let requests = endpoint.prompts();
        for request in &requests[seen..] {
            writeln!(
                out,
                "{} stream={} model={} tools={:?} results={:?}\n  system: {:.300}\n  user: {:?}",
                request.path,
                request.streams(),
                request.model(),
                request.tools,
                request.results,
                request.system,
                request.user,
            )?;
        }
        out.flush()?;
        seen = requests.len();
    }
}

fn choose(request: &Request) -> Answer {
    let asked = request.user.last().map_or("", String::as_str);
    let after = |word: &str| asked.split_once(word).map(|(_, rest)| rest.trim());
    if let Some(call) = after("use-tool ").filter(|_| request.results.is_empty()) {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let arguments = serde_json::Deserializer::from_str(arguments).into_iter().next();
        if request.tools.iter().any(|tool| tool == name) {
            return Answer::call(name, arguments.and_then(Result::ok).unwrap_or_default());
        }
    }
    if let Some(code) = after("fail-with ") {
        let digits = code.split(|c: char| !c.is_ascii_digit()).next();
        let code = digits.and_then(|digits| digits.parse().ok());
        return Answer::status(code.unwrap_or(500), "told to fail");
    }
    // Whole words: agents add texts of their own, in which files are "changed".
    let says = |word: &str| asked.split_whitespace().any(|said| said == word);
    if says("hang") {
        Answer::hang()
    } else if says("garbage") {
        Answer::garbage()
    } else if says("cut") {
        Answer::text("this is broken off").cut()
    } else {
        Answer::text(format!("You said {} bytes; all is well.", asked.len()))
    }
}
