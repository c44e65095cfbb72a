//! A headless Chromium that tests steer: its debugging protocol over two named pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    requests: File,
    answers: BufReader<File>,
    next: u64,
    session: String,
    /// Addresses of everything that the page asked for.
    pub(crate) asked: Vec<String>,
    /// What the page wrote to its console, and errors.
    pub(crate) said: Vec<String>,
    _folder: tempfile::TempDir,
}

/// The program, where there is one.
fn program() -> Option<PathBuf> {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

impl Browser {
    /// Starts one; `None` where there is no Chromium, which is said.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("no Chromium is installed: the pages are not looked at");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        for pipe in [&to, &from] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = OpenOptions::new().write(true).open(&to).unwrap();
        let answers = BufReader::new(File::open(&from).unwrap());
        let mut browser = Self {
            child,
            requests,
            answers,
            next: 0,
            session: String::new(),
            asked: Vec::new(),
            said: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page.enable", "Network.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Calls a method, and gives its result. Where the page was left while it was asked, the
    /// new one is asked.
    fn call(&mut self, method: &str, params: Value) -> Value {
        loop {
            let message = self.exchange(method, &params);
            let left = message["error"]["message"].as_str().is_some_and(|said| {
                said.contains("navigated or closed") || said.contains("context")
            });
            if left {
                std::thread::sleep(std::time::Duration::from_millis(50));
                continue;
            }
            assert!(message.get("error").is_none(), "{method}: {message}");
            return message["result"].clone();
        }
    }

    fn exchange(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut request = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            request["sessionId"] = self.session.as_str().into();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let message = self.message();
            if message["id"] == self.next {
                return message;
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has gone");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = message["params"]["request"]["url"].as_str().unwrap();
                self.asked.push(url.to_owned());
            }
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                self.said.push(message["params"].to_string());
            }
            _ => {}
        }
        message
    }

    /// The value of an expression on the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&mut self, expression: &str) {
        let started = Instant::now();
        // Between two pages there is none to ask.
        while self.value(&format!("document.readyState === 'complete' && !!({expression})")) != true
        {
            let page = self.value("document.body ? document.body.innerText : ''");
            assert!(started.elapsed() < Duration::from_secs(20), "never: {expression}\n{page}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Goes to an address, and waits for the page.
    pub(crate) fn go(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.until(&format!("location.href === {}", json!(url)));
    }

    /// A screen of this size, light or dark.
    pub(crate) fn screen(&mut self, width: u32, height: u32, scheme: &str) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&mut self, keys: &[&str]) {
        for key in keys {
            let mut down = json!({ "type": "keyDown", "key": key });
            match *key {
                "Enter" => down["text"] = "\r".into(),
                key if key.chars().count() == 1 => down["text"] = key.into(),
                _ => {}
            }
            if *key == "Enter" {
                down["windowsVirtualKeyCode"] = 13.into();
            }
            if *key == "Escape" {
                down["windowsVirtualKeyCode"] = 27.into();
            }
            self.call("Input.dispatchKeyEvent", down);
            self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
        }
    }

    /// Types a text into what has the focus.
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// A picture of the page, kept in the folder that `VENIRE_SCREENSHOTS` names.
    pub(crate) fn picture(&mut self, name: &str) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let png = base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().unwrap())
            .unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 2000, "{name} is an empty page");
        if let Ok(folder) = std::env::var("VENIRE_SCREENSHOTS") {
            std::fs::write(Path::new(&folder).join(format!("{name}.png")), png).unwrap();
        }
    }

    /// The page fits its screen, says nothing to the console, and asks only `url` for anything.
    #[track_caller]
    pub(crate) fn is_well(&mut self, url: &str) {
        let wide = self.value("document.documentElement.scrollWidth - innerWidth");
        let place = self.value("location.pathname");
        assert!(wide.as_i64().unwrap() <= 0, "{place} is {wide} pixels too wide");
        assert!(self.said.is_empty(), "{place}: {:?}", self.said);
        let elsewhere: Vec<&String> = self
            .asked
            .iter()
            .filter(|own| !own.starts_with(url) && *own != "about:blank")
            .collect();
        assert!(elsewhere.is_empty(), "{place} asked for {elsewhere:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
