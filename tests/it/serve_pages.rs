//! The web pages: what they show, in a real browser, by the keyboard, at the width of a phone,
//! in light and dark; and that hostile text stays text.

use reqwest::Method;
use serde_json::{Value, json};

use crate::control::{COUNTING, scripted};
use crate::serving::{Answer, Serving, answer};
use crate::workbench::Workbench;

const TOKEN: &str = "0123456789abcdef0123";

/// Text that would do harm if it were not escaped.
const HOSTILE: &str = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\" 二 <b>bold</b>";

async fn page(serving: &Serving, path: &str) -> Answer {
    let request = serving.request(Method::GET, path);
    answer(request.header("accept", "text/html,application/xhtml+xml")).await
}

async fn fill(serving: &Serving, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body: Vec<String> = fields
        .iter()
        .map(|(name, value)| {
            let value: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            format!("{name}={value}")
        })
        .collect();
    let request = serving.request(Method::POST, path).header("accept", "text/html");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    answer(request.body(body.join("&"))).await
}

/// A store with a run of hostile cases, a loop that waits for a person, and a profile.
fn filled_bench() -> Workbench {
    let bench = Workbench::new();
    scripted(&bench, COUNTING, "[human]\nask = [\"before_accept\"]\n");
    bench.run(&["loop", "-q"]).exits(4);
    bench.write("panel.toml", crate::workbench::RULES);
    let rows: Vec<String> = (0..12)
        .map(|i| {
            json!({ "id": format!("c{i}"), "input": HOSTILE, "output": format!("{HOSTILE} {i}") })
                .to_string()
        })
        .chain([json!({ "id": HOSTILE, "input": "q", "output": "a b" }).to_string()])
        .collect();
    bench.write("cases.jsonl", rows.join("\n"));
    bench.run(&["run", "cases.jsonl", "-q"]).exits(0);
    let profile =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("calibration/code-changes.json");
    bench.write("calibration/code-changes.json", std::fs::read(profile).unwrap());
    bench.write("calibration/broken.json", "{}");
    bench
}

#[tokio::test]
async fn every_page_is_whole_and_hostile_text_in_it_is_text() {
    let bench = filled_bench();
    let serving = Serving::start(&bench, &["serve"]);
    let waiting = serving.get("/v1/reviews").await.is(200).json();
    let run = waiting["reviews"][0]["run"].as_str().unwrap();
    let hostile: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for path in [
        "/".to_owned(),
        "/runs/latest".to_owned(),
        "/runs/latest?decision=reject".to_owned(),
        "/runs/latest/cases/c3".to_owned(),
        format!("/runs/latest/cases/{hostile}"),
        "/loops".to_owned(),
        format!("/loops/{run}"),
        "/profiles".to_owned(),
        "/profiles/code-changes".to_owned(),
        "/review".to_owned(),
        format!("/review/{run}"),
    ] {
        let shown = page(&serving, &path).await.is(200);
        assert!(shown.header("content-type").starts_with("text/html"), "{path}");
        let policy = shown.header("content-security-policy").to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!shown.text.contains("<img src=x") && !shown.text.contains("<b>bold"), "{path}");
        assert!(!shown.text.contains("<script>document"), "{path}");
        assert!(shown.text.trim_end().ends_with("</html>"), "{path}");
    }
    let shown = page(&serving, "/profiles").await;
    assert!(
        shown.text.contains("broken") && shown.text.contains("can&#x27;t be read"),
        "{}",
        shown.text
    );
    for path in [
        "/runs/none",
        "/runs/latest/cases/none",
        "/loops/none",
        "/loops/..%2f..",
        "/profiles/none",
        "/profiles/..%2fpanel",
        "/review/none",
        "/nowhere",
    ] {
        let missing = page(&serving, path).await.is(404);
        assert!(missing.header("content-type").starts_with("text/html"), "{path}");
    }
    assert_eq!(serving.get("/runs/none").await.is(404).kind(), "not_found", "a program gets JSON");
}

#[tokio::test]
async fn a_browser_signs_in_with_a_token_and_is_let_nowhere_without() {
    let bench = filled_bench();
    bench.write("tokens", TOKEN);
    let serving = Serving::start(&bench, &["serve", "--token-file", "tokens"]);
    let client =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let get = |path: &str, cookie: &str| {
        let request = client.get(format!("{}{path}", serving.url)).header("accept", "text/html");
        answer(request.header("cookie", cookie.to_owned()))
    };
    for path in ["/", "/runs/latest", "/review"] {
        let sent = get(path, "venire=0000").await.is(303);
        assert!(sent.header("location").starts_with("/login?next=%2F"), "{path}");
    }
    get("/v1/runs", "").await.is(401);
    get("/login?next=//evil.example", "").await.is(200);
    let sign_in = |token: &str, next: &str| {
        let request = client.post(format!("{}/login", serving.url)).header("accept", "text/html");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        answer(request.body(format!("token={token}&next={next}")))
    };
    let wrong = sign_in("0123456789abcdef0124", "/").await.is(401);
    assert!(
        wrong.text.contains("no token of this server") && wrong.header("set-cookie").is_empty()
    );
    let right = sign_in(TOKEN, "%2Freview").await.is(303);
    assert_eq!(right.header("location"), "/review");
    let cookie = right.header("set-cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(TOKEN), "{cookie}");
    let session = cookie.split(';').next().unwrap().to_owned();
    get("/review", &session).await.is(200);
    get("/v1/runs", &session).await.is(200);
    assert_eq!(sign_in(TOKEN, "//evil.example").await.is(303).header("location"), "/");
    let out = client.post(format!("{}/logout", serving.url)).header("cookie", &session);
    answer(out).await.is(303);
    get("/review", &session).await.is(303);
}

#[tokio::test]
async fn answers_on_the_review_page_are_those_of_the_review_verb() {
    let bench = filled_bench();
    let serving = Serving::start(&bench, &["serve", "--no-panel"]);
    let waiting = serving.get("/v1/reviews").await.is(200).json();
    let run = waiting["reviews"][0]["run"].as_str().unwrap().to_owned();
    let path = format!("/review/{run}");
    for (fields, status) in [
        (vec![("answer", "maybe")], 422),
        (vec![("answer", "reject"), ("text", " ")], 422),
        (vec![("answer", "edit"), ("text", "")], 422),
        (vec![("answer", "score"), ("text", "1.5")], 422),
        (vec![("answer", "score"), ("text", "NaN")], 422),
        (vec![], 422),
    ] {
        fill(&serving, &path, &fields).await.is(status);
    }
    fill(&serving, "/review/..%2f..", &[("answer", "accept")]).await.is(409);
    let kept = fill(&serving, &path, &[("answer", "score"), ("text", "0.4")]).await.is(200);
    assert!(kept.text.contains("the score is kept"), "the page after it");
    fill(&serving, &path, &[("answer", "reject"), ("text", "too\r\nplain")]).await.is(200);
    fill(&serving, &path, &[("answer", "accept")]).await.is(409);
    let log = bench.read(&format!(".venire/loops/{run}/events.jsonl"));
    assert!(log.contains("too\\nplain") && log.contains("0.4"), "{log}");
    scripted(&bench, COUNTING, "[human]\nask = [\"before_accept\"]\n");
    bench.run(&["loop", "--resume", &run, "-q"]).exits(4);
    let body = json!({ "answer": { "kind": "accept" } });
    serving.post(&format!("/v1/reviews/{run}"), &json!({})).await.is(422);
    serving.post(&format!("/v1/reviews/{run}"), &json!({ "score": 2 })).await.is(422);
    serving.post(&format!("/v1/reviews/{run}"), &body).await.is(200);
    serving.post(&format!("/v1/reviews/{run}"), &body).await.is(409);
    let result = bench.run(&["loop", "--resume", &run, "--json", "-q"]).exits(0).json();
    assert_eq!(result["reason"], "human_accepted");
    let view = serving.get(&format!("/v1/loops/{run}")).await.is(200).json();
    assert_eq!((&view["doing"], &view["outcome"]), (&json!("ended"), &json!("accepted")));
    assert_eq!(view["generations"].as_array().unwrap().len(), 6);
    assert_eq!(view["generations"][4]["label"], 0.4);
}

#[tokio::test]
async fn labels_are_kept_in_long_form_and_votes_are_hidden_until_then() {
    let bench = filled_bench();
    let arguments = [
        "label",
        "cases.jsonl",
        "--run",
        "latest",
        "--rater",
        "ana",
        "--criterion",
        "good",
        "--labels",
        "ana.csv",
    ];
    let serving = Serving::start(&bench, &arguments);
    let url = serving.url.clone();
    assert!(url.ends_with("/label"), "{url}");
    let serving = serving.at_root();
    let first = page(&serving, "/label").await.is(200);
    assert!(
        first.text.contains("Case 1 of 13") && !first.text.contains("class=\"strip\""),
        "{}",
        first.text
    );
    for hidden in ["/runs/latest", "/v1/runs", "/v1/runs/latest/cases", "/review", "/loops"] {
        page(&serving, hidden).await.is(404);
    }
    let case = |text: &str| {
        let at = text.find("name=\"case\" value=\"").unwrap() + 19;
        text[at..].split('"').next().unwrap().to_owned()
    };
    let asked = case(&first.text);
    fill(&serving, "/label", &[("case", &asked), ("label", "7")]).await.is(422);
    fill(&serving, "/label", &[("case", "none"), ("label", "1")]).await.is(409);
    let second = fill(&serving, "/label", &[("case", &asked), ("label", "1")]).await.is(200);
    assert!(
        second.text.contains("Case 2 of 13") && second.text.contains("class=\"strip\""),
        "{}",
        second.text
    );
    fill(&serving, "/label", &[("case", &asked), ("label", "0")]).await.is(409);
    let next = case(&second.text);
    let third = fill(&serving, "/label/skip", &[("case", &next)]).await.is(200);
    assert!(third.text.contains("Case 2 of 13") && case(&third.text) != next);
    let text = bench.read("ana.csv");
    assert_eq!(text, format!("item_id,rater,criterion,label\n{asked},ana,good,1\n"));
    let held = bench.run(&arguments).exits(2);
    assert!(held.stderr.contains("another process"), "{}", held.stderr);
    drop(serving);
    let serving = Serving::start(&bench, &arguments).at_root();
    let again = page(&serving, "/label").await.is(200);
    assert!(again.text.contains("Case 2 of 13") && case(&again.text) == next, "it goes on");
}

#[test]
fn a_labelling_queue_that_can_t_be_is_refused_with_what_to_do() {
    let bench = filled_bench();
    let label = |more: &[&str]| {
        let mut arguments = vec!["label", "cases.jsonl", "--listen", "127.0.0.1:0"];
        arguments.extend(more);
        bench.run(&arguments).exits(2)
    };
    label(&[]).says(&["--rater"]);
    label(&["--rater", " "]).says(&["expected a name"]);
    label(&["--rater", "ana", "--order", "informative"]).says(&["--run"]);
    label(&["--rater", "ana", "--choices", "good"]).says(&["no choice"]);
    label(&["--rater", "ana", "--choices", "1,2"]).says(&["--scale"]);
    label(&["--rater", "ana", "--scale", "5-1"]);
    label(&["--rater", "ana", "--run", "none"]).says(&["no run `none`"]);
    label(&["--rater", "ana", "--rubric", "helpfulness"]).says(&["has no criterion `overall`"]);
    label(&["--rater", "ana", "--labels", "x.jsonl"]).says(&[".csv"]);
    bench.write("other.csv", "case,grade\na,1\n");
    label(&["--rater", "ana", "--labels", "other.csv"]).says(&["columns"]);
    bench.write("cases.jsonl", "{\"id\":\"zzz\",\"output\":\"a\"}\n");
    label(&["--rater", "ana", "--run", "latest"]).says(&["no case of"]);
    assert!(bench.run(&["label", "none.csv", "--rater", "a"]).exits(2).stderr.contains("none.csv"));
}

#[cfg(target_os = "linux")]
#[test]
fn in_a_browser_pages_fit_ask_nobody_else_and_run_no_hostile_script() {
    let Some(mut browser) = crate::browser::Browser::start() else { return };
    let bench = filled_bench();
    let serving = Serving::start(&bench, &["serve"]);
    let loops = bench.run(&["review", "--json"]).exits(0).json();
    let run = loops[0]["run"].as_str().unwrap();
    for (width, height, scheme) in
        [(1200, 900, "light"), (1200, 900, "dark"), (375, 812, "light"), (375, 812, "dark")]
    {
        browser.screen(width, height, scheme);
        for (name, path) in [
            ("home", "/".to_owned()),
            ("run", "/runs/latest".to_owned()),
            ("case", "/runs/latest/cases/c3".to_owned()),
            ("loops", "/loops".to_owned()),
            ("loop", format!("/loops/{run}")),
            ("profiles", "/profiles".to_owned()),
            ("profile", "/profiles/code-changes".to_owned()),
            ("review", "/review".to_owned()),
        ] {
            browser.go(&format!("{}{path}", serving.url));
            assert_ne!(browser.value("document.title"), "taken", "{path}");
            browser.is_well(&serving.url);
            if ["home", "run", "loops", "profiles", "review"].contains(&name) {
                let cut = browser.value("[...document.querySelectorAll('.scroll')].filter(own => own.scrollWidth > own.clientWidth).length");
                assert_eq!(cut, 0, "{path} at {width}: a table is cut off");
            }
            browser.picture(&format!("{name}-{width}-{scheme}"));
        }
        let ground = browser.value("getComputedStyle(document.body).backgroundColor");
        let dark = ground.as_str().unwrap().trim_start_matches("rgb(").starts_with("21");
        assert_eq!(dark, scheme == "dark", "{ground}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_queues_are_worked_by_the_keyboard_alone() {
    let Some(mut browser) = crate::browser::Browser::start() else { return };
    let bench = filled_bench();
    let arguments = [
        "label",
        "cases.jsonl",
        "--run",
        "latest",
        "--rater",
        "ana",
        "--scale",
        "1-5",
        "--labels",
        "ana.csv",
    ];
    let serving = Serving::start(&bench, &arguments);
    browser.screen(375, 812, "dark");
    browser.go(&serving.url);
    browser.picture("label-375-dark");
    browser.press(&["4", "Enter"]);
    browser.until("document.title === 'Case 2 of 13'");
    let first = browser.value("document.querySelector('[name=case]').value");
    browser.press(&["s"]);
    browser.until(&format!("document.querySelector('[name=case]').value !== {first}"));
    browser.press(&["2", "5", "Enter"]);
    browser.until("document.title === 'Case 3 of 13'");
    browser.screen(1200, 900, "light");
    browser.picture("label-1200-light");
    let root = serving.url.trim_end_matches("/label").to_owned();
    browser.is_well(&root);
    let labels: Vec<String> = bench.read("ana.csv").lines().map(str::to_owned).collect();
    assert!(
        labels.len() == 3 && labels[1].ends_with(",4") && labels[2].ends_with(",5"),
        "{labels:?}"
    );
    drop(serving);

    let serving = Serving::start(&bench, &["serve", "--no-panel"]);
    browser.asked.clear();
    browser.go(&format!("{}/review", serving.url));
    browser.press(&["r"]);
    browser.until("document.activeElement.tagName === 'TEXTAREA'");
    browser.write("not yet: axcs");
    browser.press(&["Escape", "a"]);
    browser.until("document.activeElement.textContent.includes('accept')");
    let waiting = bench.run(&["review", "--json"]).exits(0).json();
    assert_eq!(waiting.as_array().map(Vec::len), Some(1), "one key answers nothing");
    browser.press(&["Enter"]);
    browser.until("document.body.textContent.includes('answered; go on with')");
    browser.is_well(&serving.url);
    assert_eq!(bench.run(&["review", "--json"]).exits(0).json(), json!([]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_loop_s_page_follows_the_loop() {
    let Some(mut browser) = crate::browser::Browser::start() else { return };
    let bench = Workbench::new();
    let slow = COUNTING.replacen(
        "cat > /dev/null;",
        "cat > /dev/null; while [ ! -e go$VENIRE_GENERATION ]; do sleep 0.05; done;",
        1,
    );
    scripted(&bench, &slow, "");
    let serving = Serving::start(&bench, &["serve", "--no-panel"]);
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(["loop", "-q", "--json"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    browser.go(&format!("{}/loops", serving.url));
    let started = std::time::Instant::now();
    while browser.value("document.querySelectorAll('td a').length") != 1 {
        assert!(started.elapsed().as_secs() < 20, "the loop never shows");
        browser.go(&format!("{}/loops", serving.url));
    }
    // The list follows too, and the keyboard stays where it is.
    browser.value("document.querySelector('td a').focus()");
    bench.write("go1", "");
    browser.until("document.querySelector('td.number').textContent === '1'");
    browser.until("document.activeElement.matches('td a')");
    browser.value("document.querySelector('td a').click()");
    browser.until("document.body.textContent.includes('generating')");
    browser.until("document.querySelector('summary')");
    browser.value("document.querySelector('.more summary').focus()");
    for generation in 1..=5 {
        bench.write(&format!("go{generation}"), "");
        browser.until(&format!("document.querySelectorAll('td.id').length === {generation}"));
    }
    browser.until("document.activeElement.matches('.more summary')");
    browser.until("document.body.textContent.includes('quality reached')");
    assert!(running.wait().unwrap().success());
    browser.is_well(&serving.url);
    let ended: Value = browser.value("document.querySelector('[data-live]') === null");
    assert_eq!(ended, true);
}
