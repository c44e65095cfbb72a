"""The panel through the program and through HTTP, and what becomes of everything but a
ruling."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT, Make

from venire import NotMeasured, Panel, Ruling, UsageError, VenireError


def test_an_output_is_accepted_or_rejected_with_what_to_change(short: Panel) -> None:
    good = short.judge("one two", input="count")
    assert (good.decision, good.score, good.reward) == ("accept", 1.0, 1.0)
    assert good.accepted and good.measured
    bad = short.judge("one two three four five")
    assert (bad.decision, bad.score, bad.measured) == ("reject", 0.0, True)
    assert "cut 1" in bad.advice() and bad.summary().startswith("reject: score 0.00")


def test_what_could_not_be_measured_has_no_score_and_says_why(same: Panel) -> None:
    ruling = same.judge("2", input="1+1")
    assert (ruling.decision, ruling.score, ruling.reward) == ("undecided", None, None)
    assert not ruling.accepted and not ruling.measured
    assert "abstained" in ruling.summary() and "expected" in ruling.summary()
    with pytest.raises(NotMeasured) as caught:
        ruling.measured_reward()
    assert caught.value.ruling is ruling
    assert same.judge("2", input="1+1", expected="2").accepted


def test_a_veto_is_paid_nothing_whatever_the_median(veto: Panel) -> None:
    ruling = veto.judge("give it")
    assert (ruling.decision, ruling.score, ruling.reward) == ("reject", 1.0, 0.0)
    assert veto.judge("please give it").reward == 1.0


def test_hostile_and_foreign_text_gets_through_unharmed(short: Panel) -> None:
    for text in [
        "",
        "中文",
        "a\x00b",
        '"; rm -rf / #',
        "--json",
        "-",
        "@/etc/passwd",
        "\ud7ff\U0001f600",
    ]:
        assert short.judge(text, input=text, metadata={"键": "值"}).accepted, text
    assert short.judge("word " * 200_000).decision == "reject"
    with pytest.raises(UsageError):
        short.judge(7)  # type: ignore[arg-type]


def test_any_number_of_threads_may_ask_and_so_may_a_coroutine(short: Panel) -> None:
    with ThreadPoolExecutor(8) as pool:
        rulings = list(pool.map(short.judge, ["one", "a b c d e"] * 8))
    assert [ruling.accepted for ruling in rulings] == [True, False] * 8
    assert asyncio.run(short.ajudge("one")).accepted


def test_what_can_t_be_used_is_told_before_anything_is_judged(
    panel_file: Make, program: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no program"):
        Panel(panel_file(SHORT), executable="no-such-venire")
    with pytest.raises(UsageError, match="no panel file"):
        Panel(tmp_path / "nowhere.toml", executable=program)
    broken = Panel(panel_file(SHORT.replace("length", "lenght")), executable=program)
    with pytest.raises(UsageError, match="lenght"):
        broken.judge("x")
    with pytest.raises(UsageError):
        Panel(panel_file(SHORT), executable=program, arguments=["--nonsense"]).judge("x")


def test_the_folder_may_change_after_the_panel_was_named(
    panel_file: Make, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = panel_file(SHORT).name
    monkeypatch.chdir(tmp_path)
    panel = Panel(name, executable=program)
    monkeypatch.chdir("/")
    assert panel.judge("one", input="x").accepted


def _script(folder: Path, body: str) -> str:
    path = folder / "venire-stand-in"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("cat > /dev/null; exit 2", UsageError),
        ("cat > /dev/null; exit 4", NotMeasured),
        ("cat > /dev/null; echo down >&2; exit 3", NotMeasured),
        ("cat > /dev/null; exit 130", NotMeasured),
        ("cat > /dev/null; kill -9 $$", NotMeasured),
        ("cat > /dev/null; echo no json", VenireError),
        ('cat > /dev/null; echo \'{"decision": "accept", "score": NaN}\'', VenireError),
        ('cat > /dev/null; echo \'{"decision": "maybe"}\'', VenireError),
        ("exit 0", NotMeasured),
    ],
)
def test_no_exit_and_no_noise_is_taken_for_a_verdict(
    tmp_path: Path, panel_file: Make, body: str, error: type[Exception]
) -> None:
    panel = Panel(panel_file(SHORT), executable=_script(tmp_path, body))
    with pytest.raises(error):
        panel.judge("x" * 1_000_000)


def test_a_program_that_hangs_is_ended_with_its_children(
    tmp_path: Path, panel_file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.panel.GRACE", 0.5)
    mark = tmp_path / "pid"
    # One that does not end when it is asked to.
    body = f"trap '' TERM; sleep 60 & echo $! > {mark}; wait; wait"
    panel = Panel(panel_file(SHORT), executable=_script(tmp_path, body), timeout=0.5)
    with pytest.raises(NotMeasured, match=r"within 0\.5 s"):
        panel.judge("x")
    until = time.monotonic() + 5
    while _is_alive(mark.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _is_alive(mark.read_text().strip())


def test_a_real_check_that_hangs_leaves_no_child(
    panel_file: Make, program: str, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    panel = Panel(
        panel_file(
            'threshold = 0.5\n[[judge]]\nname = "check"\nkind = "command"\n'
            f'checks = [{{ argv = ["sh", "-c", "echo $$ > {mark}; sleep 60"] }}]\n'
        ),
        executable=program,
        timeout=3.0,
    )
    with pytest.raises(NotMeasured):
        panel.judge("x")
    until = time.monotonic() + 5
    while _is_alive(mark.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _is_alive(mark.read_text().strip())


def _is_alive(pid: str) -> bool:
    """Whether a process is there, and is more than an entry that waits for its reaper."""
    try:
        return ") Z " not in Path("/proc", pid, "stat").read_text()
    except OSError:
        return False


RULING: dict[str, Any] = {
    "decision": "reject",
    "score": 0.25,
    "threshold": 0.5,
    "reason": {"kind": "threshold"},
    "votes_used": 1,
    "votes_declared": 1,
    "feedback": [{"text": "too long", "judges": ["a"], "criterion": "length"}],
}


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers from a list; what it was asked is kept."""

    script: list[tuple[int, dict[str, str], bytes]] = []  # noqa: RUF012
    asked: list[tuple[str, dict[str, str], Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append((self.path, dict(self.headers), json.loads(body)))
        status, headers, text = self.script.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Answers]]]:
    handler = type("Handler", (_Answers,), {"script": [], "asked": []})
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}", handler
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_a_server_is_asked_with_the_case_and_the_token(server: tuple[str, type[_Answers]]) -> None:
    url, answers = server
    answers.script.append((200, {}, json.dumps(RULING).encode()))
    ruling = Panel.at(url + "/", token="0123456789abcdef").judge("out", input="in")
    assert (ruling.decision, ruling.score) == ("reject", 0.25)
    assert ruling.feedback == ("length: too long",)
    path, headers, body = answers.asked[0]
    assert path == "/v1/score" and body == {"input": "in", "output": "out"}
    assert {k.lower(): v for k, v in headers.items()}["authorization"] == "Bearer 0123456789abcdef"


def test_a_busy_server_is_asked_again_when_it_says(server: tuple[str, type[_Answers]]) -> None:
    url, answers = server
    busy = (429, {"Retry-After": "0"}, b'{"error": {"kind": "busy", "message": "full"}}')
    answers.script += [busy, busy, (200, {}, json.dumps(RULING).encode())]
    assert Panel.at(url).judge("x").score == 0.25
    answers.script += [busy] * 4
    with pytest.raises(NotMeasured, match="busy: full"):
        Panel.at(url).judge("x")
    assert len(answers.asked) == 7
    answers.script.append((503, {"Retry-After": "3600"}, b"{}"))
    started = time.monotonic()
    with pytest.raises(NotMeasured):
        Panel.at(url, timeout=2.0).judge("x")
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (400, b'{"error": {"kind": "bad_json", "message": "m"}}', UsageError),
        (401, b"", UsageError),
        (413, b"too large", NotMeasured),
        (422, b'{"error": {"kind": "unusable", "message": "m", "field": "f"}}', UsageError),
        (500, b"oops", NotMeasured),
        (502, b"<html>", NotMeasured),
        (200, b"not json", VenireError),
        (200, b'{"decision": "accept", "score": Infinity, "threshold": 0.5}', VenireError),
        (200, b'{"decision": "accept", "score": "0.9", "threshold": 0.5}', VenireError),
        (200, b'{"decision": "accept", "score": 7, "threshold": 0.5}', VenireError),
    ],
)
def test_no_answer_but_a_ruling_is_a_ruling(
    server: tuple[str, type[_Answers]], status: int, text: bytes, error: type[Exception]
) -> None:
    url, answers = server
    answers.script.append((status, {}, text))
    with pytest.raises(error):
        Panel.at(url).judge("x")


def test_a_server_that_is_not_there_measures_nothing() -> None:
    with pytest.raises(NotMeasured, match="failed to ask"):
        Panel.at("http://127.0.0.1:9").judge("x")
    with pytest.raises(UsageError):
        Panel.at("127.0.0.1:9")


def test_undecided_never_carries_a_score_through() -> None:
    raw = {**RULING, "decision": "undecided", "score": 0.9, "reason": {"kind": "no_quorum"}}
    ruling = Ruling.from_json(raw)
    assert ruling.score is None and ruling.reward is None
    by_veto = {**RULING, "score": None, "reason": {"kind": "required_judge", "judge": "a"}}
    ruling = Ruling.from_json(by_veto)
    assert (ruling.score, ruling.reward, ruling.measured) == (None, 0.0, True)


def test_importing_the_package_imports_no_host() -> None:
    code = (
        "import sys, venire; "
        "print([m for m in ('dspy', 'langgraph', 'crewai', 'google.adk', 'openhands', 'torch') "
        "if m in sys.modules])"
    )
    import subprocess
    import sys

    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=True,
    )
    assert found.stdout.strip() == "[]"
