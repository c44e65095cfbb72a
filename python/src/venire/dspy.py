"""DSPy: a reward for ``BestOfN`` and ``Refine``, a metric for ``Evaluate`` and ``GEPA``.

Not measured: ``NotMeasured`` is raised. DSPy counts that as a failed attempt (``fail_count``)
or a failed example (``max_errors``, then ``failure_score``); a NaN would make it return None,
and a 0 would say that the answer is bad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from venire.errors import UsageError
from venire.panel import Panel
from venire.ruling import Ruling

__all__ = ["metric", "reward"]


def reward(
    panel: Panel, *, output: str, input: str | None = None, context: str | None = None
) -> Callable[[dict[str, Any], Any], float]:
    """A ``reward_fn`` for ``dspy.BestOfN`` and ``dspy.Refine``.

    ``output`` names the prediction's field that is judged, ``input`` and ``context`` fields of
    the module's arguments. ``Refine`` shows the source of a reward function to the model that
    it asks for advice: that of this one says nothing of the judges.
    """

    def reward_fn(args: dict[str, Any], pred: Any) -> float:
        ruling = panel.judge(
            _text(pred, output), input=_part(args, input), context=_part(args, context)
        )
        return ruling.measured_reward()

    return reward_fn


def metric(
    panel: Panel,
    *,
    output: str,
    input: str | None = None,
    expected: str | None = None,
    context: str | None = None,
) -> Callable[..., Any]:
    """A metric for ``dspy.Evaluate`` and ``dspy.GEPA``, with feedback for the latter.

    ``output`` names the prediction's field that is judged; ``input``, ``expected`` and
    ``context`` name fields of the example.
    """

    def judged(
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        import dspy

        ruling: Ruling = panel.judge(
            _text(pred, output),
            input=_part(gold, input),
            expected=_part(gold, expected),
            context=_part(gold, context),
        )
        return dspy.Prediction(score=ruling.measured_reward(), feedback=ruling.advice())

    return judged


def _get(of: Any, name: str) -> Any:
    if isinstance(of, Mapping):
        return of.get(name)
    return getattr(of, name, None)


def _text(of: Any, name: str) -> str:
    value = _get(of, name)
    if value is None:
        raise UsageError(f"the prediction has no `{name}` to judge")
    return str(value)


def _part(of: Any, name: str | None) -> str | None:
    if name is None:
        return None
    value = _get(of, name)
    if value is None:
        raise UsageError(f"there is no `{name}` to judge with")
    return str(value)
