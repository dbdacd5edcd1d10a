//! Finds the handler of a request by its method.

use gen_lsp_types::Request as Method;
use lsp_server::{ErrorCode, Request, RequestId, Response};
use serde_json::Value;

use super::handlers::Context;

/// Why a request has no answer, in words for the person at the editor.
pub(super) struct Failure(pub(super) String);

/// What answers a request.
pub(super) type Answer = Box<dyn FnOnce(&Context) -> Response + Send>;

/// A request on its way to its handler.
pub(super) struct Dispatch {
    request: Option<Request>,
    answer: Option<Answer>,
}

impl Dispatch {
    pub(super) fn new(request: Request) -> Dispatch {
        Dispatch { request: Some(request), answer: None }
    }

    /// Has `handler` answer requests of this method.
    pub(super) fn on<M>(mut self, handler: fn(&Context, M::Params) -> Result<M::Result, Failure>) -> Dispatch
    where
        M: Method + 'static,
    {
        let method = M::METHOD.as_str();
        let Some(Request { id, params, .. }) = self.request.take_if(|request| request.method == method) else {
            return self;
        };
        self.answer = Some(match serde_json::from_value::<M::Params>(params) {
            Ok(params) => Box::new(move |context| make_response(id, handler(context, params))),
            Err(error) => Box::new(move |_| Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string())),
        });
        self
    }

    /// The function that answers the request; for an unknown method it answers with an error.
    pub(super) fn finish(self) -> Option<Answer> {
        match (self.answer, self.request) {
            (Some(answer), _) => Some(answer),
            (None, Some(Request { id, method, .. })) => Some(Box::new(move |_| {
                Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("`{method}` is not supported"))
            })),
            (None, None) => None,
        }
    }
}

fn make_response(id: RequestId, answer: Result<impl serde::Serialize, Failure>) -> Response {
    match answer {
        // Made here: `new_ok` would turn the value into itself once more.
        Ok(result) => Response { id, result: Some(serde_json::to_value(result).unwrap_or(Value::Null)), error: None },
        Err(Failure(message)) => Response::new_err(id, ErrorCode::RequestFailed as i32, message),
    }
}
