//! The OpenAPI document: the routes of this server, with the schemas of the types themselves.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::fault::{self, ErrorBody};
use super::judge::{BatchEnd, BatchLine};
use super::loops::{LoopList, ReviewList, ReviewRequest};
use super::reward::{Classified, ClassifyRequest, RewardRequest, Rewards, Verified};
use super::runs::{CaseList, CasesQuery, Part, RunList, RunView};
use super::service::Service;
use crate::case::Case;
use crate::control::watch::LoopView;
use crate::ruling::Ruling;
use crate::verdict::Verdict;

/// Where a document keeps its schemas.
const SCHEMAS: &str = "/components/schemas";

/// What a request with a body can be answered with, beside a result.
const OF_BODIES: &[(u16, &str)] = &[
    (400, "the body is not JSON"),
    (408, "the body came too slowly"),
    (413, "the body is too large"),
    (415, "the body is of another type"),
    (422, "the body is JSON and can't be used"),
    (429, "too many requests are in hand; `retry-after` says when to come back"),
    (503, "the server is being stopped, or nothing was measured that a number could stand for"),
];

/// What a request that reads can be answered with.
const OF_READING: &[(u16, &str)] = &[
    (400, "the query is not right"),
    (404, "there is no such thing"),
    (409, "several things have an id that begins so"),
];

/// What any request can be answered with.
const OF_ALL: &[(u16, &str)] = &[
    (401, "no token, or a wrong one"),
    (403, "the request came under another host's name, or from a page of another site"),
    (500, "a fault of this program; a judge's failure is none"),
];

pub(super) async fn page(State(service): State<Arc<Service>>) -> Response {
    fault::json(StatusCode::OK, &document(&service))
}

/// The document of a service.
pub(super) fn document(service: &Service) -> Value {
    let mut writer = Writer::new();
    let mut paths = Map::new();
    let (judging, reading) = (service.judging().is_some(), service.labelling().is_none());
    for route in routes(&mut writer, judging, reading) {
        let errors = writer.errors(&route);
        let mut responses = Map::new();
        responses.insert("200".to_owned(), route.answer);
        responses.extend(errors);
        let mut operation = json!({
            "operationId": route.name, "tags": [route.tag], "summary": route.summary,
            "description": route.description, "responses": responses,
        });
        if !route.parameters.is_empty() {
            operation["parameters"] = route.parameters.into();
        }
        if let Some(body) = route.body {
            operation["requestBody"] = body;
        }
        if !service.options().tokens.is_empty() && !route.open {
            operation["security"] = json!([{ "bearer": [] }]);
        }
        paths.insert(route.path.to_owned(), json!({ route.method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "venire",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A panel of independent judges, and the median of their votes",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": writer.schemas(),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

struct Route {
    path: &'static str,
    method: &'static str,
    name: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: Value,
    errors: &'static [(u16, &'static str)],
    /// Whether it needs no token.
    open: bool,
}

/// Collects schemas as they are named.
struct Writer {
    /// Of what is read: a field with a default may be left out.
    requests: SchemaGenerator,
    /// Of what is written.
    answers: SchemaGenerator,
    /// The schema of a case in a request.
    case: Value,
}

impl Writer {
    fn new() -> Self {
        let settings =
            || SchemaSettings::draft2020_12().with(|own| own.definitions_path = SCHEMAS.into());
        let mut requests = settings().for_deserialize().into_generator();
        // In a request the id may be left out.
        let mut case = Case::json_schema(&mut requests).to_value();
        if let Some(required) = case.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != "id");
        }
        Self { requests, answers: settings().for_serialize().into_generator(), case }
    }

    fn read<T: JsonSchema>(&mut self) -> Schema {
        self.requests.subschema_for::<T>()
    }

    fn written<T: JsonSchema>(&mut self) -> Schema {
        self.answers.subschema_for::<T>()
    }

    fn schemas(mut self) -> Map<String, Value> {
        let mut schemas = self.requests.take_definitions(true);
        schemas.extend(self.answers.take_definitions(true));
        schemas.insert("NewCase".to_owned(), self.case);
        schemas
    }

    fn errors(&mut self, route: &Route) -> Map<String, Value> {
        let schema = self.written::<ErrorBody>();
        // Whether the server lives or is ready is asked without a token.
        let all = OF_ALL.iter().filter(|(status, _)| !(route.open && *status == 401));
        let mut all: Vec<_> = route.errors.iter().chain(all).collect();
        all.sort_by_key(|(status, _)| *status);
        all.into_iter()
            .map(|(status, what)| {
                let answer = json!({
                    "description": what,
                    "content": { "application/json": { "schema": schema } },
                });
                (status.to_string(), answer)
            })
            .collect()
    }

    /// The properties of a type as parameters of a query.
    fn query<T: JsonSchema>(&mut self) -> Vec<Value> {
        let schema = T::json_schema(&mut self.requests).to_value();
        let properties = schema.get("properties").and_then(Value::as_object).cloned();
        properties
            .unwrap_or_default()
            .into_iter()
            .map(|(name, mut schema)| {
                let words = schema.as_object_mut().and_then(|own| own.remove("description"));
                // A query holds a value or nothing: there is no null.
                without_null(&mut schema);
                if name == "limit" {
                    schema = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
                }
                if name == "offset" {
                    schema = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
                }
                json!({
                    "name": name, "in": "query", "required": false,
                    "description": words, "schema": schema,
                })
            })
            .collect()
    }
}

fn without_null(schema: &mut Value) {
    if let Some(kinds) = schema.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let rest: Vec<Value> = any.iter().filter(|part| part["type"] != "null").cloned().collect();
        if let [only] = rest.as_slice() {
            *schema = only.clone();
        }
    }
}

fn content(kind: &str, schema: impl serde::Serialize, description: &str) -> Value {
    json!({ "description": description, "content": { kind: { "schema": schema } } })
}

fn body(kind: &str, schema: impl serde::Serialize) -> Value {
    json!({ "required": true, "content": { kind: { "schema": schema } } })
}

fn in_path(name: &str, description: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": { "type": "string", "minLength": 1 },
    })
}

const JSON: &str = "application/json";

fn routes(writer: &mut Writer, judging: bool, reading: bool) -> Vec<Route> {
    let mut routes = Vec::new();
    if judging {
        routes.extend(of_judging(writer));
        routes.extend(of_rewards(writer));
    }
    if reading {
        routes.extend(of_runs(writer));
        routes.extend(of_loops(writer));
    }
    let status = json!({
        "type": "object", "properties": { "status": { "type": "string" } }, "required": ["status"],
    });
    let plain = |path, name, summary, description, answer, errors, open| Route {
        path,
        method: "get",
        name,
        tag: "server",
        summary,
        description,
        parameters: Vec::new(),
        body: None,
        answer,
        errors,
        open,
    };
    const NOT_READY: &[(u16, &str)] = &[(503, "new work is not taken now")];
    routes.push(plain(
        "/health",
        "health",
        "Whether the process lives",
        "Needs no token.",
        content(JSON, &status, "it lives"),
        &[],
        true,
    ));
    routes.push(plain(
        "/ready",
        "ready",
        "Whether new work is taken",
        "Needs no token. Not while the server is being stopped, the queue is full, or replies can't be kept.",
        content(JSON, &status, "it is"),
        NOT_READY,
        true,
    ));
    routes.push(plain(
        "/metrics",
        "metrics",
        "Figures for Prometheus",
        "Requests, rulings by decision, verdicts by judge and status, times, tokens, cost.",
        content("text/plain", json!({ "type": "string" }), "the figures"),
        &[],
        false,
    ));
    routes.push(plain(
        "/openapi.json",
        "openapi",
        "This document",
        "",
        content(JSON, json!({ "type": "object" }), "the document"),
        &[],
        false,
    ));
    routes
}

fn of_judging(writer: &mut Writer) -> Vec<Route> {
    let case = json!({ "$ref": format!("#{SCHEMAS}/NewCase") });
    let ruling = writer.written::<Ruling>();
    let (line, end) = (writer.written::<BatchLine>(), writer.written::<BatchEnd>());
    let route = |path, name, summary, description, body, answer| Route {
        path,
        method: "post",
        name,
        tag: "judging",
        summary,
        description,
        parameters: Vec::new(),
        body: Some(body),
        answer,
        errors: OF_BODIES,
        open: false,
    };
    let mut gated =
        content(JSON, &ruling, "the ruling, or the decision and what to change as text");
    gated["content"]["text/plain"] = json!({ "schema": { "type": "string" } });
    gated["headers"] = json!({ "venire-exit-code": {
        "description": "the exit code of `venire gate`: 0 accepted, 1 rejected, 3 undecided",
        "schema": { "type": "string", "enum": ["0", "1", "3"] },
    } });
    let mut batch = route(
        "/v1/score/batch",
        "score_batch",
        "Judge many cases",
        "JSON Lines in, a case each; JSON Lines out, a line for each in their order, as they come, and a line with the sums at the end. Without that last line the answer is not whole.",
        // Each line is a case; the whole is no JSON that a schema could be about.
        body("application/x-ndjson", json!({ "description": "of each line: `NewCase`" })),
        content(
            "application/x-ndjson",
            json!({ "description": "of each line", "anyOf": [line, end] }),
            "the rulings",
        ),
    );
    batch.errors = OF_BATCHES;
    vec![
        route(
            "/v1/score",
            "score",
            "Judge a case",
            "What `venire score --json` prints. A judge that failed is a status in the ruling.",
            body(JSON, &case),
            content(JSON, &ruling, "the ruling"),
        ),
        route(
            "/v1/gate",
            "gate",
            "Judge a case for a script",
            "What `venire gate --json` prints, with the decision as a header too; with `accept: text/plain` the decision and what to change, in at most 40 lines.",
            body(JSON, &case),
            gated,
        ),
        batch,
    ]
}

/// As [`OF_BODIES`], and what only a batch can be answered with.
const OF_BATCHES: &[(u16, &str)] = &[
    (408, "the batch came too slowly"),
    (400, "the batch broke off"),
    (413, "the batch is too large"),
    (415, "the batch is of another type"),
    (429, "too many requests are in hand; `retry-after` says when to come back"),
    (503, "the server is being stopped"),
    (507, "no room is left to keep the batch while it is judged"),
];

fn of_rewards(writer: &mut Writer) -> Vec<Route> {
    let reward_request = writer.read::<RewardRequest>();
    let rewards = writer.written::<Rewards>();
    let verified = writer.written::<Verified>();
    let classify_request = writer.read::<ClassifyRequest>();
    let classified = writer.written::<Classified>();
    let sent = json!({
        "type": "object",
        "properties": {
            "responses_create_params": {
                "type": "object",
                "properties": { "input": { "anyOf": [
                    { "type": "string" }, { "type": "array", "items": { "type": "object" } }, { "type": "null" },
                ] } },
            },
            "response": {
                "type": "object",
                "properties": { "output": { "type": "array", "items": { "type": "object" } } },
                "required": ["output"],
            },
        },
        "required": ["responses_create_params", "response"],
    });
    let route = |path, name, summary, description, body, answer| Route {
        path,
        method: "post",
        name,
        tag: "rewards",
        summary,
        description,
        parameters: Vec::new(),
        body: Some(body),
        answer,
        errors: OF_BODIES,
        open: false,
    };
    vec![
        route(
            "/get_reward",
            "get_reward",
            "Rewards of texts",
            "For trainers that send whole texts. Where nothing was decided on one of them the answer is 503, so that the trainer asks again.",
            body(JSON, reward_request),
            content(JSON, rewards, "the rewards"),
        ),
        route(
            "/verify",
            "verify",
            "The reward of a response",
            "For resources servers: everything sent comes back, with the reward. Where nothing was decided `mask_sample` is true.",
            body(JSON, sent),
            content(JSON, verified, "the request, with the reward"),
        ),
        route(
            "/classify",
            "classify",
            "Texts as `reject` or `accept`",
            "In the form of vLLM's route of this name. Where nothing was decided on one of them the answer is 503.",
            body(JSON, classify_request),
            content(JSON, classified, "the classes"),
        ),
    ]
}

fn of_runs(writer: &mut Writer) -> Vec<Route> {
    let run = || in_path("run", "a run's id, the beginning of one, or `latest`");
    let case_id = in_path("case", "a case's id, or the beginning or end of one");
    let (list, one) = (writer.written::<RunList>(), writer.written::<RunView>());
    let cases = writer.written::<CaseList>();
    let (case, ruling, verdict) =
        (writer.written::<Case>(), writer.written::<Ruling>(), writer.written::<Verdict>());
    let whole = json!({
        "type": "object",
        "properties": {
            "run": { "type": "string" }, "case": case,
            "ruling": { "anyOf": [ruling, { "type": "null" }] },
            "verdicts": { "type": "array", "items": verdict },
        },
        "required": ["run", "case", "ruling", "verdicts"],
    });
    let (part, chosen) = (writer.query::<Part>(), writer.query::<CasesQuery>());
    let route = |path, name, summary, parameters, answer| Route {
        path,
        method: "get",
        name,
        tag: "runs",
        summary,
        description: "",
        parameters,
        body: None,
        answer,
        errors: OF_READING,
        open: false,
    };
    vec![
        route("/v1/runs", "runs", "Runs, the newest first", part, content(JSON, list, "the runs")),
        route("/v1/runs/{run}", "run", "A run", vec![run()], content(JSON, one, "the run")),
        route(
            "/v1/runs/{run}/cases",
            "run_cases",
            "Rulings of a run, in the data's order",
            std::iter::once(run()).chain(chosen).collect(),
            content(JSON, cases, "the rulings"),
        ),
        route(
            "/v1/runs/{run}/cases/{case}",
            "run_case",
            "A case with its ruling and verdicts",
            vec![run(), case_id],
            content(JSON, whole, "the case"),
        ),
    ]
}

/// What an answer to a question can be answered with.
const OF_REVIEWS: &[(u16, &str)] = &[
    (400, "the body is not JSON"),
    (408, "the body came too slowly"),
    (409, "nothing is asked, or the run is held by another process"),
    (413, "the body is too large"),
    (415, "the body is of another type"),
    (422, "the body is JSON and can't be used"),
];

fn of_loops(writer: &mut Writer) -> Vec<Route> {
    let (list, view) = (writer.written::<LoopList>(), writer.written::<LoopView>());
    let (reviews, request) = (writer.written::<ReviewList>(), writer.read::<ReviewRequest>());
    let run = || in_path("run", "a loop's id");
    let route = |path, name, summary, parameters, answer| Route {
        path,
        method: "get",
        name,
        tag: "loops",
        summary,
        description: "",
        parameters,
        body: None,
        answer,
        errors: OF_READING,
        open: false,
    };
    let kept = json!({
        "type": "object", "properties": { "status": { "const": "kept" } }, "required": ["status"],
    });
    let answering = Route {
        method: "post",
        description: "An answer, a score of the output in question (a label), or both. The run takes it up when it is gone on with.",
        body: Some(body(JSON, request)),
        errors: OF_REVIEWS,
        ..route(
            "/v1/reviews/{run}",
            "review",
            "Answer a question",
            vec![run()],
            content(JSON, kept, "the answer is kept"),
        )
    };
    vec![
        route(
            "/v1/loops",
            "loops",
            "Loops, the newest first",
            Vec::new(),
            content(JSON, list, "the loops"),
        ),
        route(
            "/v1/loops/{run}",
            "loop",
            "A loop as it goes on",
            vec![run()],
            content(JSON, view, "the loop"),
        ),
        route(
            "/v1/reviews",
            "reviews",
            "Questions that wait for a person",
            Vec::new(),
            content(JSON, reviews, "the questions"),
        ),
        answering,
    ]
}
