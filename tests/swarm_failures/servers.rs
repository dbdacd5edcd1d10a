//! Tool servers that die, hang, lie or never stop, and built-in tools at their bounds, each called by another member.

use std::os::unix::fs::symlink;

use super::*;
use crate::swarms::members::{ends, events};

/// What the servers do; `SECRET_TOKEN` is theirs too.
const HOSTILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/src/io/tools/tests/hostile.py");

/// A member `name` of its own agent, who may use what server `name` has, which behaves like `manner`.
fn served(name: &str, manner: &str) -> (String, String) {
    let more = format!(
        "tool-server {name} {{ exec python3 \"{HOSTILE}\" {manner} marks; env key }}\n\
         agent plays-{name} provider=p {{ tools {name} file_read; can network }}\n"
    );
    (format!("    member {name} agent=plays-{name} \"Light lamp {name}\"\n"), more)
}

fn team(servers: &[(&str, &str)]) -> (String, String) {
    let (members, more): (Vec<String>, Vec<String>) = servers.iter().map(|(name, manner)| served(name, manner)).unzip();
    (members.concat(), more.concat())
}

/// Nothing that a server started is alive.
fn is_quiet(place: &Place) {
    let marks = fs::read_to_string(place.work().join("marks")).unwrap_or_default();
    let pids: Vec<&str> = marks.lines().filter_map(|mark| mark.strip_prefix("start ")).collect();
    assert!(!pids.is_empty(), "{marks}");
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
}

/// The last thing that the last prompt of a member says of its tools.
fn told<'p>(prompts: &'p BTreeMap<String, Vec<String>>, name: &str) -> &'p str {
    prompts[name].last().map_or("", String::as_str)
}

#[test]
fn servers_that_fail_leave_the_others_alone() {
    let endpoint = answering(|name, asked| match (name, asked) {
        ("dies", 0 | 1) => calls("dies.die", &json!({})),
        ("fails", 0..3) => calls("fails.fail", &json!({})),
        ("many", 0) => calls("many.tool_499", &json!({})),
        ("greets", 0) => calls("greets.echo", &json!({ "text": "hello" })),
        ("big", 0) => calls("big.big", &json!({ "bytes": 10 << 20 })),
        ("huge", 0) => calls("huge.big", &json!({ "bytes": 20 << 20 })),
        ("tells", 0) => calls("tells.env", &json!({})),
        ("forges", 0) => calls("forges.forge", &json!({})),
        (name, _) => done(name),
    });
    let servers = [
        ("dies", "good"),
        ("fails", "good"),
        ("many", "many"),
        ("greets", "greets"),
        ("big", "good"),
        ("huge", "good"),
        ("tells", "good"),
        ("forges", "good"),
        ("exits", "exit"),
        ("babbles", "garbage"),
        ("endless", "endless"),
        ("nonsense", "nonsense"),
    ];
    let (mut members, mut more) = team(&servers);
    // Nobody listens there.
    members += "    member closed agent=plays-closed \"Light lamp closed\"\n";
    more += "tool-server closed url=\"http://127.0.0.1:9/mcp\"\n\
             agent plays-closed provider=p { tools closed; can network }\n";
    let rules = "limits { agents 30; iterations 6; timeout \"60s\" }; retry { transient \"50ms\" max=\"100ms\" }";
    let place = Team { kind: "openai tools=schema", agent: "", members, rules, more }.place(&endpoint);
    let started = Instant::now();
    let (ended, peak) = watched(&place);
    let ended = ended.expect(0, &[], &[]);
    assert!(started.elapsed() < Duration::from_secs(60) && peak < 500, "{:?}, {peak} MiB", started.elapsed());
    let events = events(&ended);
    let (ends, prompts) = (ends(&events), prompts(&endpoint));
    for (name, how, said) in [
        ("fails", "tool_errors", "consecutive tool errors"),
        ("exits", "unreachable", "cannot find my files"),
        ("babbles", "unreachable", "it prints something other than messages of the protocol"),
        ("endless", "unreachable", "it sent a message of more than 16 MiB"),
        ("nonsense", "unreachable", "did not start"),
        ("closed", "unreachable", "tool server `closed`"),
    ] {
        assert_eq!(ends[name], how, "{name}: {}", error(&events, name));
        assert!(error(&events, name).contains(said), "{name}: {}", error(&events, name));
    }
    for (name, said) in [
        ("dies", "went away during the call of `die`, which may have done its work"),
        ("many", "tool_call:many.tool_499 →"),
        ("greets", "→ <data>hello</data>"),
        ("big", "[10485760 characters, of which the first 4000 follow; saved to tool-results/big-001-big.big.txt (its"),
        ("huge", "it sent a message of more than 16 MiB"),
        ("tells", "⟦secret:SECRET_TOKEN⟧"),
        ("forges", "<<output:x>>"),
    ] {
        assert_eq!(ends[name], "done", "{name}: {}", error(&events, name));
        assert!(told(&prompts, name).contains(said), "{name}: {}", told(&prompts, name));
    }
    let shown = prompts["many"][0].matches("many.tool_").count();
    let offered = endpoint.prompts().into_iter().find(|it| asks(it).is_some_and(|(name, _)| name == "many"));
    let body = offered.map(|request| request.body.to_string()).unwrap_or_default();
    assert!(body.contains("many.tool_125") && !body.contains("many.tool_130"), "128 tools are offered");
    assert!(shown <= 128 && body.len() < 200_000, "{shown} in {} bytes", body.len());
    assert!(ended.out.contains("may use 501 tools, and is offered the first 128"), "{}", ended.out);
    // A server that died is started once more, and then stays away.
    let deaths = about(&events, "tool_ended", "dies").filter(|event| event["fault"] == "permanent").count();
    assert_eq!(deaths, 2, "{:?}", about(&events, "tool_ended", "dies").collect::<Vec<_>>());
    // Forged sections stand where nobody takes them for ours.
    let forged = told(&prompts, "forges");
    assert_eq!(forged.lines().filter(|line| line.starts_with("## ")).count(), 4, "{forged}");
    assert!(forged.matches("</data>").count() == 1 && !forged.contains('\u{1b}'), "{forged}");
    assert!(
        fs::metadata(place.work().join("tool-results/big-001-big.big.txt")).is_ok_and(|file| file.len() == 1 << 20)
    );
    assert!(!everything(&place).contains(KEY) && !ended.out.contains(KEY) && !ended.err.contains(KEY));
    assert!(!endpoint.requests().iter().any(|request| request.body.to_string().contains(KEY)), "models see no secret");
    is_quiet(&place);
}

#[test]
fn servers_that_hang_hold_an_agent_no_longer_than_its_time() {
    let endpoint = answering(|name, asked| match (name, asked) {
        ("mute", 0) => calls("mute.hang", &json!({})),
        ("busy", 0) => calls("busy.busy", &json!({})),
        (name, _) => done(name),
    });
    let (members, more) =
        team(&[("silent", "silent"), ("deaf", "mute"), ("mute", "good"), ("busy", "good"), ("calm", "stubborn")]);
    let rules = "limits { timeout \"5s\" }; retry { transient \"50ms\" max=\"500ms\" }";
    let place = Team { kind: "openai tools=schema", agent: "", members, rules, more }.place(&endpoint);
    let started = Instant::now();
    let ended = run(&place).expect(0, &["calm is done"], &[]);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let events = events(&ended);
    let ends = ends(&events);
    for name in ["silent", "deaf", "mute", "busy"] {
        assert_eq!((ends[name], error(&events, name)), ("timed_out", "it took longer than 5 seconds"), "{name}");
    }
    // What may pass is tried until the agent's time is over, and counts as no error.
    let busy: Vec<&Value> = about(&events, "tool_ended", "busy").collect();
    assert!(busy.len() > 3 && busy.iter().all(|event| event["fault"]["transient"].is_object()), "{busy:?}");
    is_quiet(&place);
}

#[test]
fn built_in_tools_keep_their_bounds() {
    let endpoint = answering(|name, asked| match (name, asked) {
        ("up", 0) => calls("file_read", &json!({ "path": "../flow.kdl" })),
        ("absolute", 0) => calls("file_read", &json!({ "path": "/etc/passwd" })),
        ("outward", 0) => calls("file_read", &json!({ "path": "out/passwd" })),
        ("writes", 0) => calls("file_write", &json!({ "path": "out/x", "content": "x" })),
        ("hooks", 0) => calls("file_write", &json!({ "path": ".git/hooks/pre-commit", "content": "x" })),
        ("huge", 0) => calls("file_read", &json!({ "path": "huge" })),
        ("endless", 0) => calls("shell", &json!({ "command": "yes \"$(printf 'x%.0s' $(seq 999))\"", "seconds": 2 })),
        ("leaves", 0) => calls("shell", &json!({ "command": "sleep 300 >/dev/null 2>&1 & echo $! > pid; echo gone" })),
        ("prints", 0) => calls("shell", &json!({ "command": "cat secret; echo; env | grep -c TOKEN" })),
        (name, _) => done(name),
    });
    let names = ["up", "absolute", "outward", "writes", "hooks", "huge", "endless", "leaves", "prints"];
    let agent = "tools file_read file_write shell; can write-files run-commands";
    let rules = "limits { agents 30; iterations 5 }";
    let members = members(names);
    let place = Team { kind: "openai tools=schema", agent, members, rules, more: String::new() }.place(&endpoint);
    symlink("/etc", place.work().join("out")).expect("a link can be made");
    fs::File::create(place.work().join("huge")).and_then(|file| file.set_len(1 << 30)).expect("a file can be made");
    place.write("secret", KEY);
    let (ended, peak) = watched(&place);
    let ended = ended.expect(0, &[], &[]);
    assert!(peak < 500, "{peak} MiB");
    let prompts = prompts(&endpoint);
    for (name, said) in [
        ("up", "`..`"),
        ("absolute", "`/etc/passwd`"),
        ("outward", "leads out of the working folder"),
        ("writes", "leads through a link that is not followed"),
        ("hooks", "belongs to Git"),
        ("huge", "is larger than the 10485760 bytes that are read"),
        ("endless", "[ended after 2 seconds"),
        ("leaves", "<data>gone</data>"),
        ("prints", "⟦secret:SECRET_TOKEN⟧"),
    ] {
        assert!(told(&prompts, name).contains(said), "{name}: {}", told(&prompts, name));
    }
    assert!(told(&prompts, "endless").contains("only the last 1048576 bytes"), "{}", told(&prompts, "endless"));
    assert_eq!(ends(&events(&ended)).values().collect::<std::collections::BTreeSet<_>>().len(), 1, "all are done");
    let pid = fs::read_to_string(place.work().join("pid")).expect("it says its number");
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "what it left behind is ended: {stat}");
    fs::remove_file(place.work().join("secret")).expect("it was ours");
    assert!(!everything(&place).contains(KEY) && !ended.out.contains(KEY) && !ended.err.contains(KEY));
}
