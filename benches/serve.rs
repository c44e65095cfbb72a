//! What `/v1/score` costs beside a bare handler: `venire serve` with rule judges against an
//! axum handler that reads the same JSON and answers with as many bytes, in one sitting.
//!
//! `cargo bench --bench serve -- [--seconds 5] [--connections 64] [--rounds 3]`
//!
//! Prints one JSON line a round and one with the medians. Only the ratio means something: the
//! machine may be busy with other work, and the client runs on it too.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

const PANEL: &str = r#"
name = "rules"
threshold = 0.5
[[judge]]
name = "short"
kind = "rule"
rule = "length"
words = { max = 40 }
[[judge]]
name = "some"
kind = "rule"
rule = "length"
words = { min = 1 }
[[judge]]
name = "no-plea"
kind = "rule"
rule = "injection"
required = true
"#;

fn main() -> Anything<()> {
    let (mut seconds, mut connections, mut rounds) = (5, 64, 3);
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, answer] = arguments.as_slice()
        && flag == "--bare"
    {
        return runtime()?.block_on(bare(answer.clone()));
    }
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("no value for {}", pair[0]).into()) };
        let value: u64 = value.parse()?;
        match name.as_str() {
            "--seconds" => seconds = value,
            "--connections" => connections = value,
            "--rounds" => rounds = value,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("panel.toml"), PANEL)?;
    let serve = ["serve", "--listen", "127.0.0.1:0", "-j", "64", "--queue", "1024"];
    let (_venire, venire) = start(Path::new(env!("CARGO_BIN_EXE_venire")), &serve, folder.path())?;
    let runtime = runtime()?;
    let case =
        json!({ "id": "c1", "input": "What is asked?", "output": "An answer of a few words." });
    let answer = runtime.block_on(async {
        let sent = reqwest::Client::new().post(format!("{venire}/v1/score")).json(&case).send();
        sent.await?.error_for_status()?.text().await
    })?;
    let arguments = ["--bare", answer.as_str()];
    let (_bare, bare) = start(&std::env::current_exe()?, &arguments, folder.path())?;
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let time = Duration::from_secs(seconds);
        let bare = runtime.block_on(load(&format!("{bare}/v1/score"), &case, connections, time))?;
        let own =
            runtime.block_on(load(&format!("{venire}/v1/score"), &case, connections, time))?;
        ratios.push(own / bare);
        say(&json!({
            "round": round, "connections": connections, "bare_per_second": bare,
            "venire_per_second": own, "ratio": own / bare,
        }));
    }
    ratios.sort_by(f64::total_cmp);
    say(&json!({ "answer_bytes": answer.len(), "median_ratio": ratios[ratios.len() / 2] }));
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Ends a process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and reads the address that it prints.
fn start(program: &Path, arguments: &[&str], folder: &Path) -> Anything<(Running, String)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdout(Stdio::piped());
    let mut child = Running(command.spawn()?);
    let stdout = child.0.stdout.take().ok_or("no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok((child, line.trim().to_owned()))
}

/// The bare handler: JSON in, the same answer out.
async fn bare(answer: String) -> Anything<()> {
    let handler = async |State(answer): State<Arc<String>>, Json(case): Json<Value>| {
        assert!(case.is_object());
        ([(CONTENT_TYPE, "application/json")], answer.as_str().to_owned())
    };
    let router = Router::new().route("/v1/score", post(handler)).with_state(Arc::new(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    say(&format!("http://{}", listener.local_addr()?));
    Ok(axum::serve(listener, router).await?)
}

/// Requests a second over so many connections.
async fn load(url: &str, case: &Value, connections: u64, time: Duration) -> Anything<f64> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let (done, started) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let body = case.to_string();
    let clients = (0..connections).map(|_| {
        let (client, done, body, url) =
            (client.clone(), done.clone(), body.clone(), url.to_owned());
        tokio::spawn(async move {
            while started.elapsed() < time {
                let request = client.post(&url).header(CONTENT_TYPE, "application/json");
                let answer = request.body(body.clone()).send().await?.error_for_status()?;
                answer.bytes().await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, reqwest::Error>(())
        })
    });
    for client in futures::future::join_all(clients).await {
        client??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn say(line: &impl std::fmt::Display) {
    println!("{line}");
}
