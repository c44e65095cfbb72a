//! `venire serve` and `venire label`, started in a folder and asked over HTTP.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::workbench::Workbench;

/// A running server; dropping it ends it.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
    client: Client,
}

/// An answer: status, headers and body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The kind of an error.
    #[track_caller]
    pub(crate) fn kind(&self) -> String {
        let body = self.json();
        assert!(body["error"]["message"].is_string(), "{body}");
        body["error"]["kind"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) async fn answer(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status: StatusCode::as_u16(&status), headers, text: response.text().await.unwrap() }
}

impl Serving {
    /// Starts a verb that serves on a free port, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(bench: &Workbench, arguments: &[&str]) -> Self {
        Self::start_with(bench, arguments, &[])
    }

    #[track_caller]
    pub(crate) fn start_with(
        bench: &Workbench,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
        command.current_dir(bench.path("")).args(arguments).args(["--listen", "127.0.0.1:0"]);
        for (name, _) in std::env::vars() {
            if name.ends_with("_API_KEY") || name.starts_with("VENIRE_") {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("it does not serve: {said}");
        }
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { child, url: line.trim().to_owned(), client }
    }

    /// The same server, asked from its root on where it said a page to begin at.
    pub(crate) fn at_root(mut self) -> Self {
        self.url = self.url.trim_end_matches("/label").to_owned();
        self
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(Method::POST, path).json(body)).await
    }

    /// A body as it is, of a type.
    pub(crate) async fn send(&self, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
        let request = self.request(Method::POST, path).header("content-type", kind);
        answer(request.body(body.into())).await
    }

    /// Waits for its end, and says how it ended.
    pub(crate) fn end_of_itself(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The most memory that it has had, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
