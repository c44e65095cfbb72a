"""Real OpenHands with the scripted model that ships with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SAME, SHORT, Make, need

need("openhands.sdk")

LONG, GOOD = "one two three four five six", "one two"


def _run(critic: Any, answers: list[str], folder: Path) -> tuple[list[Any], list[str]]:
    """The critic's results, and what the agent was told between."""
    from openhands.sdk import Agent, Conversation
    from openhands.sdk.event import ActionEvent, MessageEvent
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.testing import TestLLM

    messages: list[Any] = [
        Message(
            role="assistant",
            content=[TextContent(text="")],
            tool_calls=[
                MessageToolCall(
                    id=f"call_{at}",
                    name="finish",
                    arguments=json.dumps({"message": answer}),
                    origin="completion",
                )
            ],
        )
        for at, answer in enumerate(answers)
    ]
    agent = Agent(llm=TestLLM.from_messages(messages), tools=[], critic=critic)
    conversation = Conversation(agent=agent, workspace=str(folder), visualizer=None)
    conversation.send_message("count")
    conversation.run()
    events = list(conversation.state.events)
    results = [e.critic_result for e in events if isinstance(e, ActionEvent) and e.critic_result]
    told = [
        "".join(part.text for part in e.llm_message.content)
        for e in events
        if isinstance(e, MessageEvent) and e.source == "user"
    ]
    return results, told[1:]


@pytest.fixture
def critic(panel_file: Make, program: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("VENIRE", program)

    def make(panel: str, **options: Any) -> Any:
        from openhands.sdk.critic.base import IterativeRefinementConfig

        from venire.openhands import PanelCritic

        refine = IterativeRefinementConfig(success_threshold=0.6, max_iterations=2)
        return PanelCritic(config=str(panel_file(panel)), iterative_refinement=refine, **options)

    return make


def test_a_rejected_answer_is_worked_on_with_the_feedback(critic: Any, tmp_path: Path) -> None:
    results, told = _run(critic(SHORT), [LONG, GOOD], tmp_path)
    assert [result.score for result in results] == [0.0, 1.0]
    assert results[1].metadata["decision"] == "accept"
    assert len(told) == 1 and "cut 2" in told[0]


def test_the_host_s_limit_ends_what_is_never_accepted(critic: Any, tmp_path: Path) -> None:
    results, told = _run(critic(SHORT), [LONG] * 9, tmp_path)
    assert [result.metadata["decision"] for result in results] == ["reject"] * 3
    assert len(told) == 2


def test_not_measured_is_never_success(critic: Any, tmp_path: Path) -> None:
    results, told = _run(critic(SAME), [GOOD] * 9, tmp_path)
    assert [(r.score, r.metadata["measured"]) for r in results] == [(0.0, False)] * 3
    assert "could not be judged" in told[0]
    results, told = _run(critic(SAME, not_measured="finish"), [GOOD] * 9, tmp_path)
    assert (len(results), results[0].metadata["decision"], told) == (1, "undecided", [])


def test_a_panel_that_breaks_later_is_not_measured_and_one_that_is_missing_is_refused(
    critic: Any, tmp_path: Path
) -> None:
    from venire.openhands import PanelCritic

    judge = critic("[[judge]]\n")
    results, _ = _run(judge, [GOOD] * 9, tmp_path)
    assert all(result.score == 0.0 and not result.metadata["measured"] for result in results)
    with pytest.raises(ValueError, match="no panel file"):
        PanelCritic(config="nowhere.toml")


def test_a_score_agrees_with_the_decision_on_the_host_s_bar(critic: Any, tmp_path: Path) -> None:
    # The panel's own threshold is below and above the host's 0.6.
    panel = """
threshold = {}
[[judge]]
name = "half"
kind = "rule"
rule = "similarity"
metric = "jaccard"
against = "input"
"""
    low, high = panel.format(0.2), panel.format(0.9)
    results, _ = _run(critic(low), ["count the words"] * 9, tmp_path)
    assert results[0].metadata["decision"] == "accept" and results[0].score >= 0.6
    results, _ = _run(critic(high), ["count x"] * 9, tmp_path)
    assert results[0].metadata["decision"] == "reject" and results[0].score < 0.6


def test_the_critic_can_be_written_down_and_read_again(critic: Any) -> None:
    from openhands.sdk.critic.base import CriticBase

    judge = critic(SHORT)
    again = CriticBase.model_validate_json(judge.model_dump_json())
    assert again == judge
