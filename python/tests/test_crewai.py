"""Real CrewAI with a model of our own."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from conftest import need

from venire import Panel, UsageError
from venire.crewai import guardrail

crewai: Any = need("crewai")

LONG, GOOD = "one two three four five six", "one two"


def _crew(answers: list[str], check: Any, retries: int = 3) -> tuple[Any, list[str]]:
    from crewai import BaseLLM

    prompts: list[str] = []

    class Scripted(BaseLLM):  # type: ignore[misc]
        def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            prompts.append(str(messages))
            answer = answers[min(len(prompts), len(answers)) - 1]
            return f"Thought: I now can give a great answer\nFinal Answer: {answer}"

    agent = crewai.Agent(role="r", goal="g", backstory="b", llm=Scripted(model="scripted"))
    task = crewai.Task(
        description="count",
        expected_output="words",
        agent=agent,
        guardrail=check,
        guardrail_max_retries=retries,
    )
    return crewai.Crew(agents=[agent], tasks=[task]), prompts


def test_a_rejected_output_is_made_again_with_the_feedback_and_its_draft(short: Panel) -> None:
    crew, prompts = _crew([LONG, GOOD], guardrail(short))
    assert crew.kickoff().raw == GOOD
    assert "cut 2" in prompts[1] and LONG in prompts[1]


def test_an_output_that_is_never_accepted_ends_the_crew_with_the_reason(short: Panel) -> None:
    crew, prompts = _crew([LONG], guardrail(short), retries=2)
    with pytest.raises(Exception, match="cut 2"):
        crew.kickoff()
    assert len(prompts) == 3


def test_not_measured_passes_only_where_that_is_said(
    same: Panel, caplog: pytest.LogCaptureFixture
) -> None:
    crew, _ = _crew([GOOD], guardrail(same), retries=1)
    with pytest.raises(Exception, match="not measured"):
        crew.kickoff()
    crew, prompts = _crew([GOOD], guardrail(same, not_measured="pass"))
    with caplog.at_level(logging.WARNING, logger="venire"):
        assert crew.kickoff().raw == GOOD
    assert len(prompts) == 1 and "without a judgement" in caplog.text


def test_a_panel_that_can_t_be_used_is_an_error_and_no_verdict(
    panel_file: Any, program: str
) -> None:
    broken = Panel(panel_file("[[judge]]\n"), executable=program)
    crew, _ = _crew([GOOD], guardrail(broken, not_measured="pass"))
    with pytest.raises(UsageError):
        crew.kickoff()
