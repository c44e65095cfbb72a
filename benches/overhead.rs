//! What a judgement costs beside the bare request: `venire run` against a loop that posts the
//! same bodies and keeps nothing, on one mock server, in one sitting.
//!
//! `cargo build --release --examples && cargo bench --bench overhead -- [--cases 10000]
//! [--judges 3] [--latency-ms 0] [--in-flight 256] [--rounds 3]`
//!
//! Prints one JSON line a round and one with the medians. Only the ratios mean something: the
//! machine may be busy with other work.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures::StreamExt;
use serde_json::{Value, json};

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

struct Settings {
    cases: usize,
    judges: usize,
    latency_ms: u64,
    in_flight: usize,
    rounds: usize,
}

/// CPU and wall seconds of one side.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    wall: f64,
}

fn main() -> Anything<()> {
    let mut settings =
        Settings { cases: 10_000, judges: 3, latency_ms: 0, in_flight: 256, rounds: 3 };
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("no value for {}", pair[0]).into()) };
        let value: usize = value.parse()?;
        match name.as_str() {
            "--cases" => settings.cases = value,
            "--judges" => settings.judges = value,
            "--latency-ms" => settings.latency_ms = value as u64,
            "--in-flight" => settings.in_flight = value,
            "--rounds" => settings.rounds = value,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let folder = tempfile::tempdir()?;
    let (server, url) = start_server(settings.latency_ms)?;
    let _server = KillOnDrop(server);
    write_cases(&folder.path().join("cases.jsonl"), settings.cases)?;
    write_panel(&folder.path().join("panel.toml"), &url, settings.judges)?;
    let bodies = capture(folder.path(), settings.judges)?;
    let mut ratios = Vec::new();
    for round in 0..settings.rounds {
        let bare = bare_loop(&url, &bodies, &settings)?;
        let venire = venire_run(folder.path(), round, &settings)?;
        let judgements = (settings.cases * settings.judges) as f64;
        let ideal = judgements / settings.in_flight as f64 * settings.latency_ms as f64 / 1e3;
        ratios.push((venire.cpu / bare.cpu, venire.wall / bare.wall, ideal / venire.wall));
        say(&json!({
            "round": round, "judgements": judgements,
            "bare_cpu_us": bare.cpu / judgements * 1e6, "venire_cpu_us": venire.cpu / judgements * 1e6,
            "bare_wall_s": bare.wall, "venire_wall_s": venire.wall,
            "cpu_ratio": venire.cpu / bare.cpu, "wall_ratio": venire.wall / bare.wall,
            "share_of_ideal_rate": (settings.latency_ms > 0).then_some(ideal / venire.wall),
        }));
    }
    say(&json!({
        "median_cpu_ratio": median(ratios.iter().map(|r| r.0)),
        "median_wall_ratio": median(ratios.iter().map(|r| r.1)),
        "median_share_of_ideal_rate":
            (settings.latency_ms > 0).then(|| median(ratios.iter().map(|r| r.2))),
    }));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn say(value: &Value) {
    println!("{value}");
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder of the release binaries, from where this bench was built.
fn binaries() -> Anything<PathBuf> {
    let bench = std::env::current_exe()?;
    let deps = bench.parent().ok_or("no folder")?;
    Ok(deps.parent().ok_or("no folder")?.to_owned())
}

fn start_server(latency_ms: u64) -> Anything<(Child, String)> {
    let mut server = Command::new(binaries()?.join("examples/mock_server"))
        .args(["--port", "0", "--latency-ms", &latency_ms.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{e}: run `cargo build --release --examples` first"))?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no stdout")?).lines();
    let ready = lines.next().ok_or("the server said nothing")??;
    let url = ready.strip_prefix("ready ").ok_or("the server is not ready")?.to_owned();
    // Whatever it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Ok((server, url))
}

fn write_cases(path: &Path, count: usize) -> Anything<()> {
    let mut text = String::new();
    for i in 0..count {
        let output = format!("Answer number {i}: ") + &"a sentence of some words. ".repeat(16);
        let row =
            json!({ "id": format!("case-{i}"), "input": "What is asked here?", "output": output });
        text.push_str(&row.to_string());
        text.push('\n');
    }
    Ok(std::fs::write(path, text)?)
}

fn write_panel(path: &Path, url: &str, judges: usize) -> Anything<()> {
    let mut text = String::from("threshold = 0.5\n");
    for i in 0..judges {
        text.push_str(&format!(
            "[[judge]]\nname = \"m{i}\"\nkind = \"llm\"\nmodel = \"openai/mock-{i}\"\n\
             base_url = \"{url}/v1\"\nmode = \"yes_no\"\ncriterion = \"Is the answer right?\"\n\
             max_in_flight = 1024\n"
        ));
    }
    Ok(std::fs::write(path, text)?)
}

/// The bodies that venire sends for one case, one a judge, taken from a server that listens
/// for one run of one case.
fn capture(folder: &Path, judges: usize) -> Anything<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let url = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let app = axum::Router::new().fallback(move |body: String| {
            let log = log.clone();
            async move {
                if let Ok(mut log) = log.lock() {
                    log.push(body);
                }
                axum::Json(json!({
                    "model": "m", "choices": [{ "finish_reason": "stop", "message": { "content": "yes" } }],
                    "usage": { "prompt_tokens": 1, "completion_tokens": 1 },
                }))
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok::<_, std::io::Error>(url)
    })?;
    let panel = folder.join("capture.toml");
    write_panel(&panel, &url, judges)?;
    let status = Command::new(binaries()?.join("venire"))
        .args(["run", "-q", "--json", "--limit", "1", "-c"])
        .arg(&panel)
        .arg(folder.join("cases.jsonl"))
        .arg("--store")
        .arg(folder.join("capture.db"))
        .stdout(Stdio::null())
        .status()?;
    let bodies = seen.lock().map_err(|_| "the log is broken")?.clone();
    if !status.success() || bodies.len() != judges {
        return Err(format!("captured {} bodies of {judges}", bodies.len()).into());
    }
    Ok(bodies)
}

fn bare_loop(url: &str, bodies: &[String], settings: &Settings) -> Anything<Cost> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let url = format!("{url}/v1/chat/completions");
    let client = reqwest::Client::builder().no_proxy().build()?;
    let cpu = cpu_seconds(Of::This)?;
    let started = Instant::now();
    runtime.block_on(async {
        let calls = (0..settings.cases * settings.judges).map(|i| {
            let body = bodies[i % bodies.len()]
                .replace("Answer number 0:", &format!("Answer number {}:", i / bodies.len()));
            let request = client.post(&url).header("content-type", "application/json").body(body);
            tokio::spawn(async move {
                let reply = request.send().await?.error_for_status()?;
                reply.bytes().await.map(|bytes| bytes.len())
            })
        });
        let mut answers = futures::stream::iter(calls).buffer_unordered(settings.in_flight);
        while let Some(answer) = answers.next().await {
            answer??;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    Ok(Cost { cpu: cpu_seconds(Of::This)? - cpu, wall: started.elapsed().as_secs_f64() })
}

fn venire_run(folder: &Path, round: usize, settings: &Settings) -> Anything<Cost> {
    let cpu = cpu_seconds(Of::EndedChildren)?;
    let started = Instant::now();
    let output = Command::new(binaries()?.join("venire"))
        .args(["run", "-q", "--json", "-j", &settings.in_flight.to_string(), "-c"])
        .arg(folder.join("panel.toml"))
        .arg(folder.join("cases.jsonl"))
        .arg("--store")
        .arg(folder.join(format!("store-{round}.db")))
        .output()?;
    let wall = started.elapsed().as_secs_f64();
    let summary: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if summary["statuses"]["ok"] != json!(settings.cases * settings.judges) {
        return Err(format!("not every verdict is ok: {}", summary["statuses"]).into());
    }
    Ok(Cost { cpu: cpu_seconds(Of::EndedChildren)? - cpu, wall })
}

enum Of {
    This,
    EndedChildren,
}

/// User and system seconds, from the kernel's own count in hundredths.
fn cpu_seconds(of: Of) -> Anything<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no name in stat")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let first = match of {
        Of::This => 11,
        Of::EndedChildren => 13,
    };
    let ticks: f64 = fields[first].parse::<f64>()? + fields[first + 1].parse::<f64>()?;
    Ok(ticks / 100.0)
}
