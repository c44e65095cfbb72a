"""Every program in `docs/hosts` runs as it stands, with a model that is no model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import need

PAGES = Path(__file__).parents[2] / "docs" / "hosts"


def _blocks(page: str, info: str) -> list[str]:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def _run(
    page: str, names: dict[str, Any], folder: Path, program: str, patch: pytest.MonkeyPatch
) -> dict[str, Any]:
    (panel,) = _blocks(page, "toml panel.toml")
    (folder / "panel.toml").write_text(panel, encoding="utf-8")
    patch.chdir(folder)
    patch.setenv("VENIRE", program)
    code = _blocks(page, "python")
    assert code, f"{page}.md has no program"
    for block in code:
        exec(compile(block, f"{page}.md", "exec"), names)
    return names


@pytest.fixture
def run(tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda page, **names: _run(page, names, tmp_path, program, monkeypatch)


def test_trl(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run("trl")
    assert capsys.readouterr().out == "[1.0]\n"


def test_dspy(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    dspy: Any = need("dspy")
    from dspy.utils.dummies import DummyLM

    dspy.configure(lm=DummyLM([{"reasoning": "r", "answer": "Canberra"}] * 9))
    run("dspy")
    assert capsys.readouterr().out.splitlines()[0] == "Canberra"


def test_langgraph(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    need("langgraph")
    run("langgraph")
    assert capsys.readouterr().out == "accept 1.0 1\n"


def test_crewai(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    need("crewai")
    from crewai import BaseLLM

    class Scripted(BaseLLM):  # type: ignore[misc]
        def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            return "Thought: I now can give a great answer\nFinal Answer: Canberra"

    run("crewai", llm=Scripted(model="scripted"))
    assert "Canberra" in capsys.readouterr().out


def test_adk(run: Any) -> None:
    need("google.adk")
    names = run("adk", model="gemini-2.0-flash")
    assert [agent.name for agent in names["root_agent"].sub_agents] == ["writer", "judge"]


def test_openhands(run: Any) -> None:
    need("openhands.sdk")
    from openhands.sdk.event import ActionEvent
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.testing import TestLLM

    call = MessageToolCall(
        id="1", name="finish", arguments='{"message": "Canberra"}', origin="completion"
    )
    answer = Message(role="assistant", content=[TextContent(text="")], tool_calls=[call])
    names = run("openhands-critic", llm=TestLLM.from_messages([answer]))
    events = names["conversation"].state.events
    found = [e.critic_result for e in events if isinstance(e, ActionEvent)]
    assert found[0].metadata["decision"] == "accept"


def test_openevolve(run: Any, tmp_path: Path) -> None:
    need("openevolve")
    evaluate = run("openevolve")["evaluate"]
    program = tmp_path / "program.py"
    program.write_text("def sort(xs):\n    return sorted(xs)\n")
    assert evaluate(str(program)).metrics == {"combined_score": 1.0, "measured": 1.0}
    program.write_text("def sort(xs:\n")
    assert evaluate(str(program)).metrics == {"combined_score": 0.0, "measured": 1.0}
