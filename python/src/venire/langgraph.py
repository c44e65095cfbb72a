"""LangGraph: a node that judges the state's answer, and a router that reads the ruling.

Not measured: the router goes to ``undecided``, which has to be named, so that an outage is
never a rejection that has an answer written anew, and never an acceptance. The graph's own
limit is thousands of steps, so the router counts rejections itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict

from venire.errors import NotMeasured, UsageError
from venire.panel import Panel
from venire.ruling import Ruling

__all__ = ["RulingState", "node", "router"]


class RulingState(TypedDict, total=False):
    """What the node writes; inherit the graph's state from it."""

    decision: str
    """``accept``, ``reject`` or ``undecided``."""
    score: float | None
    """The score; None unless decided."""
    feedback: str
    """The decision and what to change, for the next prompt."""
    ruling: dict[str, Any]
    """The whole ruling; empty where the judges could not be asked."""
    judged: Annotated[int, operator.add]
    """How often the node has judged."""


def node(
    panel: Panel,
    *,
    output: str,
    input: str | None = None,
    expected: str | None = None,
    context: str | None = None,
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A node that judges ``state[output]`` and writes the keys of ``RulingState``, all of them
    plain values that any checkpointer can keep."""

    def judge(state: Mapping[str, Any]) -> dict[str, Any]:
        try:
            ruling = panel.judge(
                _text(state, output),
                input=_part(state, input),
                expected=_part(state, expected),
                context=_part(state, context),
            )
        except NotMeasured as error:
            return _written(None, str(error))
        return _written(ruling, ruling.advice())

    return judge


def _written(ruling: Ruling | None, feedback: str) -> dict[str, Any]:
    return {
        "decision": ruling.decision if ruling else "undecided",
        "score": ruling.score if ruling else None,
        "feedback": feedback,
        "ruling": dict(ruling.raw) if ruling else {},
        "judged": 1,
    }


def router(
    *, accept: str, reject: str, undecided: str, spent: str, most: int
) -> Callable[[Mapping[str, Any]], str]:
    """A router for ``add_conditional_edges``: the name of the next node by the decision.

    After ``most`` judgements a rejection goes to ``spent`` instead of ``reject``.
    """
    if most < 1:
        raise UsageError(f"`most` is {most}: expected at least 1")

    def route(state: Mapping[str, Any]) -> str:
        decision = state.get("decision")
        if decision == "accept":
            return accept
        if decision == "reject":
            return reject if int(state.get("judged", 0)) < most else spent
        return undecided

    return route


def _text(state: Mapping[str, Any], key: str) -> str:
    value = state.get(key)
    if value is None:
        raise UsageError(f"the state has no `{key}` to judge")
    return str(value)


def _part(state: Mapping[str, Any], key: str | None) -> str | None:
    return None if key is None or state.get(key) is None else str(state[key])
