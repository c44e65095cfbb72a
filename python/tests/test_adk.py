"""Real Google ADK: a loop with our judge in it, and the metric through ADK's own evaluator of
custom metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from conftest import need

from venire import Panel

need("google.adk")

LONG, GOOD = "one two three four five six", "one two"


def _run(panel: Panel, answers: list[str], most: int, **options: Any) -> tuple[dict[str, Any], int]:
    from google.adk.agents import BaseAgent, LoopAgent
    from google.adk.events import Event, EventActions
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from venire.adk import JudgeAgent

    written: list[str] = []

    class Writer(BaseAgent):  # type: ignore[misc]
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            written.append(answers[min(len(written), len(answers) - 1)])
            yield Event(
                author=self.name,
                invocation_id=ctx.invocation_id,
                actions=EventActions(state_delta={"answer": written[-1]}),
            )

    loop = LoopAgent(
        name="loop",
        max_iterations=most,
        sub_agents=[
            Writer(name="writer"),
            JudgeAgent(name="judge", panel=panel, output_key="answer", **options),
        ],
    )

    async def go() -> dict[str, Any]:
        runner = InMemoryRunner(agent=loop, app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="count")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        kept = await runner.session_service.get_session(
            app_name="app", user_id="u", session_id=session.id
        )
        return dict(kept.state)

    return asyncio.run(go()), len(written)


def test_the_loop_ends_once_an_answer_is_accepted(short: Panel) -> None:
    state, written = _run(short, [LONG, LONG, GOOD], most=9)
    assert (state["venire_decision"], state["venire_score"], written) == ("accept", 1.0, 3)


def test_a_loop_that_is_never_accepted_ends_with_its_own_limit_and_says_so(short: Panel) -> None:
    state, written = _run(short, [LONG], most=3)
    assert (state["venire_decision"], written) == ("reject", 3)
    assert "cut 2" in state["venire_feedback"]


def test_not_measured_ends_the_loop_as_undecided_unless_told_to_go_on(same: Panel) -> None:
    state, written = _run(same, [GOOD], most=3)
    assert (state["venire_decision"], state["venire_score"], written) == ("undecided", None, 1)
    state, written = _run(same, [GOOD], most=3, not_measured="continue")
    assert (state["venire_decision"], written) == ("undecided", 3)


def _invocation(text: str) -> Any:
    from google.adk.evaluation.eval_case import Invocation
    from google.genai import types

    content = lambda words: types.Content(parts=[types.Part(text=words)])  # noqa: E731
    return Invocation(user_content=content("count"), final_response=content(text))


def test_the_metric_passes_fails_and_abstains_in_adk_s_own_terms(
    short: Panel, same: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    import types as python_types

    from google.adk.evaluation.custom_metric_evaluator import _CustomMetricEvaluator
    from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus

    from venire.adk import metric

    def evaluate(panel: Panel, *texts: str) -> Any:
        module = python_types.ModuleType("my_metrics")
        module.judged = metric(panel, use_expected=False)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "my_metrics", module)
        evaluator = _CustomMetricEvaluator(
            EvalMetric(metric_name="venire", threshold=0.5), "my_metrics.judged"
        )
        return asyncio.run(evaluator.evaluate_invocations([_invocation(t) for t in texts], None))

    passed = evaluate(short, GOOD, GOOD)
    assert (passed.overall_eval_status, passed.overall_score) == (EvalStatus.PASSED, 1.0)
    failed = evaluate(short, GOOD, LONG)
    assert (failed.overall_eval_status, failed.overall_score) == (EvalStatus.FAILED, 0.5)
    assert failed.per_invocation_results[1].eval_status == EvalStatus.FAILED
    unknown = evaluate(same, GOOD)
    assert (unknown.overall_eval_status, unknown.overall_score) == (EvalStatus.NOT_EVALUATED, None)
