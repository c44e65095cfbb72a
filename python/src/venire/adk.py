"""Google ADK: an agent that judges inside a loop, and a metric for ``adk eval``.

Not measured: the agent ends the loop by default (going on would have answers written anew
that nobody can judge) and leaves ``undecided`` in the state; the metric says
``NOT_EVALUATED``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from google.genai import types

from venire.errors import NotMeasured, UsageError
from venire.panel import Panel
from venire.ruling import Ruling

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext

__all__ = ["JudgeAgent", "metric"]


class JudgeAgent(BaseAgent):  # type: ignore[misc]
    """Judges ``state[output_key]`` and ends the loop that it stands in once it is accepted.

    It writes ``venire_decision``, ``venire_score`` (None unless decided) and
    ``venire_feedback`` into the state, where the writing agent's instruction can name the
    last. Set the loop's ``max_iterations``: without it a loop whose answers are all rejected
    has no end.
    """

    panel: Any
    """The panel."""
    output_key: str
    """The key of the state that holds the answer."""
    input_key: str | None = None
    """The key of the state that holds the task; where nothing is said, the user's message."""
    not_measured: Literal["stop", "continue"] = "stop"
    """Whether the loop ends when an answer could not be measured."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        state = ctx.session.state
        output = state.get(self.output_key)
        if output is None:
            raise UsageError(f"the state has no `{self.output_key}` to judge")
        asked = state.get(self.input_key) if self.input_key else content_text(ctx.user_content)
        panel: Panel = self.panel
        ruling: Ruling | None = None
        try:
            ruling = await panel.ajudge(str(output), input=asked)
            feedback = ruling.advice()
        except NotMeasured as error:
            feedback = str(error)
        measured = ruling is not None and ruling.measured
        ends = (ruling is not None and ruling.accepted) or (
            not measured and self.not_measured == "stop"
        )
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=types.Content(role="model", parts=[types.Part(text=feedback)]),
            actions=EventActions(
                state_delta={
                    "venire_decision": ruling.decision if ruling else "undecided",
                    "venire_score": ruling.score if ruling else None,
                    "venire_feedback": feedback,
                },
                escalate=ends or None,
            ),
        )


def metric(panel: Panel, *, use_expected: bool = True) -> Callable[..., Awaitable[Any]]:
    """A function for ``custom_metrics``: put ``judged = venire.adk.metric(Panel(...))`` into a
    module of your own and name it there as ``module.judged``.

    Each invocation's final response is judged against its user's message, and, with
    ``use_expected``, the expected invocation's response. The overall score is the mean of
    those that could be measured; the whole passes when every invocation was measured and
    accepted.
    """

    async def judged(
        eval_metric: Any,
        actual_invocations: list[Any],
        expected_invocations: list[Any] | None = None,
        conversation_scenario: Any = None,
    ) -> Any:
        from google.adk.evaluation.eval_metrics import EvalStatus
        from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult

        results: list[Any] = []
        for at, actual in enumerate(actual_invocations):
            wanted = expected_invocations[at] if expected_invocations else None
            reference = content_text(wanted.final_response) if wanted and use_expected else None
            score, status = None, EvalStatus.NOT_EVALUATED
            answer = content_text(actual.final_response)
            try:
                ruling = await panel.ajudge(
                    answer or "", input=content_text(actual.user_content), expected=reference
                )
                score = ruling.reward
                if ruling.measured:
                    status = EvalStatus.PASSED if ruling.accepted else EvalStatus.FAILED
            except NotMeasured:
                pass
            results.append(
                PerInvocationResult(
                    actual_invocation=actual,
                    expected_invocation=wanted,
                    score=score,
                    eval_status=status,
                )
            )
        scores = [result.score for result in results if result.score is not None]
        statuses = {result.eval_status for result in results}
        overall = EvalStatus.NOT_EVALUATED
        if EvalStatus.FAILED in statuses:
            overall = EvalStatus.FAILED
        elif statuses == {EvalStatus.PASSED}:
            overall = EvalStatus.PASSED
        return EvaluationResult(
            overall_score=sum(scores) / len(scores) if scores else None,
            overall_eval_status=overall,
            per_invocation_results=results,
        )

    return judged


def content_text(content: Any) -> str | None:
    """The text of a message, its parts joined; None where it has none."""
    parts = getattr(content, "parts", None) or ()
    texts = [part.text for part in parts if getattr(part, "text", None)]
    return "\n".join(texts) if texts else None
