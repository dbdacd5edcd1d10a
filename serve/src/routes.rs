//! The table of all routes: what a client may ask, and the function that answers.
//!
//! In: a method and a path. Out: the route, with the parts of the path that it leaves open. Both the dispatch and the
//! OpenAPI document come from [`ROUTES`], so that no route lacks a description.

use hyper::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use swarmc_runtime::RunFolder;

use crate::Service;
use crate::handlers::{actions, files, general, graph, runs, steps, tasks, timeline, waits};
use crate::problem::Problem;
use crate::stream::{EventId, Subscription};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    /// It changes something.
    Post,
}

/// A route.
#[derive(Debug)]
pub(crate) struct Route {
    pub method: Method,
    /// `{name}` is a part that it leaves open, `{path}` all parts at the end.
    pub path: &'static str,
    /// What programs that are made from the document call it.
    pub id: &'static str,
    pub about: &'static str,
    pub query: &'static [Query],
    /// The type of its body.
    pub body: Option<&'static str>,
    pub answer: Answer,
    pub run: Handler,
}

/// A part of a query.
#[derive(Debug)]
pub(crate) struct Query {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: QueryKind,
    pub is_required: bool,
}

/// What a part of a query may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueryKind {
    Text,
    /// The name of an event.
    Event,
    /// A number from the first to the second.
    Number(i64, i64),
    /// Some of these words, with commas.
    Words(&'static [&'static str]),
}

/// What a route answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// A document of this type.
    Json(&'static str),
    /// This description.
    Description,
    /// The same, of something that begins.
    Accepted(&'static str),
    /// Bytes of a file.
    Bytes,
    /// The files of a run, as a tar archive.
    Archive,
    /// Server-sent events.
    Events,
    /// Text for a program.
    Text,
}

pub(crate) type Handler = fn(&Service, &Call) -> Result<Reply, Problem>;

/// A request, as a handler sees it.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The parts that the route leaves open, in order.
    pub parts: Vec<String>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Value,
}

/// What a handler answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Json(String),
    /// The same, with a tag by which a client asks whether it has changed.
    Tagged {
        /// None where what the client has is current.
        json: Option<String>,
        tag: String,
    },
    /// Something begins: the document, and where it is described.
    Accepted {
        json: String,
        location: Option<String>,
    },
    Bytes {
        bytes: Vec<u8>,
        from: u64,
        total: u64,
    },
    /// The files of a run.
    Archive(RunFolder),
    Events(Subscription),
    Text(String),
    /// There is nothing, and will be nothing.
    Nothing,
}

/// The most steps, or runs, of a page.
pub(crate) const PAGE: i64 = 500;

/// The states of steps, the most urgent first.
pub(crate) const STATES: &[&str] =
    &["failed", "waiting", "stalled", "retrying", "running", "idle", "cancelled", "skipped", "succeeded", "blocked"];

/// The states of runs.
const RUN_STATES: &[&str] = &["running", "resumable", "succeeded", "failed", "damaged"];

const LIMIT: Query =
    Query { name: "limit", about: "How many at most.", kind: QueryKind::Number(1, PAGE), is_required: false };
const FROM: Query = Query {
    name: "from",
    about: "The event behind which the stream begins, as `SEQ-CRC`; `0` for all.",
    kind: QueryKind::Event,
    is_required: false,
};

const OPEN: Query = Query {
    name: "open",
    about: "The steps, with commas, whose items are boxes of their own: those that run for each item of a list.",
    kind: QueryKind::Text,
    is_required: false,
};

/// Every route.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/api/v1/health",
        id: "getHealth",
        about: "Whether the server is well.",
        query: &[],
        body: None,
        answer: Answer::Json("Health"),
        run: general::get_health,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/openapi.json",
        id: "getDescription",
        about: "This document.",
        query: &[],
        body: None,
        answer: Answer::Description,
        run: general::get_description,
    },
    Route {
        method: Method::Get,
        path: "/metrics",
        id: "getMetrics",
        about: "Counts for Prometheus.",
        query: &[],
        body: None,
        answer: Answer::Text,
        run: general::get_metrics,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs",
        id: "listRuns",
        about: "Runs, the newest first, and what waits to begin.",
        query: &[
            Query {
                name: "state",
                about: "Only runs in these states.",
                kind: QueryKind::Words(RUN_STATES),
                is_required: false,
            },
            Query { name: "workflow", about: "Only runs of this workflow.", kind: QueryKind::Text, is_required: false },
            Query { name: "after", about: "Only runs older than this one.", kind: QueryKind::Text, is_required: false },
            LIMIT,
        ],
        body: None,
        answer: Answer::Json("RunPage"),
        run: runs::list_runs,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs",
        id: "submitRun",
        about: "Starts a run in a process of its own; where enough runs go on, it waits for one of them to end. The header \
                `Idempotency-Key` makes a repeated request mean the same run.",
        query: &[],
        body: Some("SubmitRun"),
        answer: Answer::Accepted("Submitted"),
        run: actions::submit_run,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}",
        id: "getRun",
        about: "A run as it is now.",
        query: &[],
        body: None,
        answer: Answer::Json("RunSnapshot"),
        run: runs::get_run,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/steps",
        id: "listSteps",
        about: "The steps of a run.",
        query: &[
            Query {
                name: "state",
                about: "Only steps in these states.",
                kind: QueryKind::Words(STATES),
                is_required: false,
            },
            Query {
                name: "q",
                about: "Only steps whose name contains this text.",
                kind: QueryKind::Text,
                is_required: false,
            },
            Query {
                name: "cursor",
                about: "How many to leave out.",
                kind: QueryKind::Number(0, i64::MAX),
                is_required: false,
            },
            LIMIT,
        ],
        body: None,
        answer: Answer::Json("StepPage"),
        run: steps::list_steps,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/steps/{label}",
        id: "getStep",
        about: "A step with all that is known of it.",
        query: &[],
        body: None,
        answer: Answer::Json("StepDocument"),
        run: steps::get_step,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/steps/{label}/agents/{agent}",
        id: "getAgent",
        about: "An agent of a swarm, turn by turn.",
        query: &[],
        body: None,
        answer: Answer::Json("AgentDetails"),
        run: steps::get_agent,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/graph",
        id: "getGraph",
        about: "A picture of the plan, in columns.",
        query: &[OPEN],
        body: None,
        answer: Answer::Json("GraphDocument"),
        run: graph::get_graph,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/graph/states",
        id: "getGraphStates",
        about: "How the boxes of the picture stand.",
        query: &[OPEN],
        body: None,
        answer: Answer::Json("GraphStates"),
        run: graph::get_states,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/timeline",
        id: "getTimeline",
        about: "The attempts of a run over time.",
        query: &[],
        body: None,
        answer: Answer::Json("Timeline"),
        run: timeline::get_timeline,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/events",
        id: "followRun",
        about: "The records of a run as server-sent events. `Last-Event-ID`, or `from`, says behind which one they begin; \
                without both they begin with the next one. Where a run has ended and nothing is left, the answer is empty.",
        query: &[FROM],
        body: None,
        answer: Answer::Events,
        run: general::follow_run,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/events",
        id: "followRuns",
        about: "Which runs begin, change and end, as server-sent events. With `runs`, the records of these runs in one stream: \
                `data` has the `run` and the `data` of its own stream, and the id says how far the client is in each.",
        query: &[
            Query { name: "runs", about: "Runs, with commas.", kind: QueryKind::Text, is_required: false },
            Query { name: "from", about: "As for one run, with `runs`.", kind: QueryKind::Text, is_required: false },
        ],
        body: None,
        answer: Answer::Events,
        run: general::follow_runs,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/files/{path}",
        id: "readFile",
        about: "Bytes of a file of a run: a prompt, a log, an output.",
        query: &[
            Query {
                name: "offset",
                about: "Where to begin; below 0, so many bytes before the end.",
                kind: QueryKind::Number(i64::MIN, i64::MAX),
                is_required: false,
            },
            Query {
                name: "limit",
                about: "How many bytes at most.",
                kind: QueryKind::Number(1, files::MOST),
                is_required: false,
            },
        ],
        body: None,
        answer: Answer::Bytes,
        run: files::read_file,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/recording.tar",
        id: "getRecording",
        about: "The files and the outputs of a run as an archive, for a report about it.",
        query: &[],
        body: None,
        answer: Answer::Archive,
        run: files::get_recording,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/runs/{run}/artifacts/{kind}/{id}",
        id: "getArtifact",
        about: "An artifact: a diff, a context pack, a prompt.",
        query: &[],
        body: None,
        answer: Answer::Json("ArtifactText"),
        run: files::get_artifact,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/waits",
        id: "listWaits",
        about: "What waits for people, in all runs that go on.",
        query: &[],
        body: None,
        answer: Answer::Json("Waits"),
        run: waits::list_waits,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/specs",
        id: "listSpecs",
        about: "The specs that may be run.",
        query: &[],
        body: None,
        answer: Answer::Json("Specs"),
        run: actions::list_specs,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/specs/plan",
        id: "planSpec",
        about: "The plan of a spec: its parameters and pipelines.",
        query: &[Query { name: "spec", about: "The spec.", kind: QueryKind::Text, is_required: true }],
        body: None,
        answer: Answer::Json("Plan"),
        run: actions::plan_spec,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs/{run}/stop",
        id: "stopRun",
        about: "Asks a run to end; it can be resumed.",
        query: &[],
        body: Some("StopRun"),
        answer: Answer::Json("Done"),
        run: actions::stop_run,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs/{run}/resume",
        id: "resumeRun",
        about: "Goes on with a run, in a process of its own.",
        query: &[],
        body: Some("ResumeRun"),
        answer: Answer::Json("Done"),
        run: actions::resume_run,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs/{run}/approvals/{number}",
        id: "answerRequest",
        about: "Answers a request of an agent; it is on disk when the answer comes.",
        query: &[],
        body: Some("AnswerRequest"),
        answer: Answer::Json("Done"),
        run: actions::answer_request,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs/{run}/gates/{gate}",
        id: "answerGate",
        about: "Answers a gate; it is on disk when the answer comes.",
        query: &[],
        body: Some("AnswerGate"),
        answer: Answer::Json("Done"),
        run: actions::answer_gate,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/runs/{run}/messages",
        id: "sendMessage",
        about: "Writes to an agent, or to a context pack; it is on disk when the answer comes.",
        query: &[],
        body: Some("SendMessage"),
        answer: Answer::Json("Done"),
        run: actions::send_message,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/tasks",
        id: "postTask",
        about: "Runs the workflow of `--tasks` for a query.",
        query: &[],
        body: Some("PostTask"),
        answer: Answer::Accepted("TaskDocument"),
        run: tasks::post_task,
    },
    Route {
        method: Method::Get,
        path: "/api/v1/tasks/{task}",
        id: "getTask",
        about: "How a task stands.",
        query: &[],
        body: None,
        answer: Answer::Json("TaskDocument"),
        run: tasks::get_task,
    },
    Route {
        method: Method::Post,
        path: "/api/v1/tasks/{task}/cancel",
        id: "cancelTask",
        about: "Ends a task: its run stops, or does not begin.",
        query: &[],
        body: Some("StopRun"),
        answer: Answer::Json("TaskDocument"),
        run: tasks::cancel_task,
    },
];

/// The routes of a path, with the parts that they leave open.
pub(crate) fn find_routes(path: &str) -> impl Iterator<Item = (&'static Route, Vec<String>)> {
    let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    ROUTES.iter().filter_map(move |route| Some((route, match_path(route.path, &parts)?)))
}

/// The parts of a path that a pattern leaves open, decoded; none where it does not fit.
fn match_path(pattern: &str, parts: &[String]) -> Option<Vec<String>> {
    let mut open = Vec::new();
    let mut rest = parts.iter();
    let decode = |part: &str| Some(percent_encoding::percent_decode_str(part).decode_utf8().ok()?.into_owned());
    for wanted in pattern.split('/') {
        match wanted {
            "{path}" => {
                let all: Vec<&str> = rest.by_ref().map(String::as_str).collect();
                open.push(decode(&all.join("/")).filter(|path| !path.is_empty())?);
            }
            wanted if wanted.starts_with('{') => open.push(decode(rest.next()?).filter(|part| !part.is_empty())?),
            wanted => {
                rest.next().filter(|part| **part == *wanted)?;
            }
        }
    }
    rest.next().is_none().then_some(open)
}

impl Call {
    /// A part of the path.
    pub(crate) fn part(&self, index: usize) -> &str {
        self.parts.get(index).map_or("", String::as_str)
    }

    /// A part of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number of the query, where it is there.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.query(name)?.parse().ok()
    }

    /// The body, as its type.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read_body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        // A type of named fields would be read from a list as well.
        if !self.body.is_object() {
            return Err(Problem::bad_request("the body is no JSON object"));
        }
        T::deserialize(&self.body).map_err(|error| Problem::bad_request(format!("the body does not fit: {error}")))
    }
}

impl Route {
    /// Whether a query has only what the route knows.
    ///
    /// # Errors
    /// A part of it is unknown, appears twice, or is not what it should be.
    pub(crate) fn check_query(&self, query: &[(String, String)]) -> Result<(), Problem> {
        let is_missing = |known: &&Query| known.is_required && query.iter().all(|(name, _)| name != known.name);
        if let Some(missing) = self.query.iter().find(is_missing) {
            return Err(Problem::bad_request(format!("`{}` is missing in the query", missing.name)));
        }
        for (position, (name, value)) in query.iter().enumerate() {
            let Some(known) = self.query.iter().find(|known| known.name == *name) else {
                let names: Vec<&str> = self.query.iter().map(|known| known.name).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(Problem::bad_request(format!("there is no query `{name}`; there are {known}")));
            };
            if query[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::bad_request(format!("`{name}` appears twice")));
            }
            match known.kind {
                QueryKind::Text => {}
                QueryKind::Event => {
                    if value.parse::<EventId>().is_err() {
                        return Err(Problem::bad_request(format!("`{name}` is {}", EventId::FORM)));
                    }
                }
                QueryKind::Number(least, most) => {
                    if !value.parse().is_ok_and(|number| (least..=most).contains(&number)) {
                        return Err(Problem::bad_request(format!("`{name}` is a number from {least} to {most}")));
                    }
                }
                QueryKind::Words(words) => {
                    if let Some(wrong) = value.split(',').find(|word| !words.contains(word)) {
                        let words = words.join(", ");
                        return Err(Problem::bad_request(format!("`{name}` has no `{wrong}`; there are {words}")));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_routes_that_fit_it() {
        let find = |path: &str| -> Vec<(&str, Vec<String>)> {
            find_routes(path).map(|(route, parts)| (route.id, parts)).collect()
        };
        assert_eq!(find("/api/v1/runs").iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["listRuns", "submitRun"]);
        assert_eq!(
            find("/api/v1/runs/r1/steps/each%5B3%5D%2Fdraft"),
            [("getStep", vec!["r1".to_owned(), "each[3]/draft".to_owned()])]
        );
        assert_eq!(
            find("/api/v1/runs/r1/files/logs/a.out"),
            [("readFile", vec!["r1".to_owned(), "logs/a.out".to_owned()])]
        );
        for nowhere in ["/api/v1/runs/", "/api/v1", "/api/v1/runs/r1/files/", "/api/v2/runs", "/api/v1/runs/%FF"] {
            assert!(find(nowhere).is_empty(), "{nowhere}");
        }
    }
}
