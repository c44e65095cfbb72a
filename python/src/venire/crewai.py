"""CrewAI: a guardrail for a task.

Not measured: an exception would end the whole crew, so there are two answers to choose from.
``not_measured="retry"`` refuses, and the crew ends with an error once its retries
(``guardrail_max_retries``) are spent; ``"pass"`` lets the output through unjudged, with a
warning on the log ``venire``.
"""

# CrewAI reads the guardrail's annotations as they stand: they must not be put off.
import logging
from collections.abc import Callable
from typing import Any, Literal

from venire.errors import NotMeasured
from venire.panel import Panel

__all__ = ["guardrail"]

_log = logging.getLogger("venire")


def guardrail(
    panel: Panel,
    *,
    task: "str | Callable[[Any], str | None] | None" = None,
    expected: "str | None" = None,
    not_measured: Literal["retry", "pass"] = "retry",
) -> Callable[[Any], tuple[bool, Any]]:
    """A ``guardrail`` for ``crewai.Task``.

    ``task`` is what was asked: text, or a function of the ``TaskOutput``; where nothing is
    said, the output's own ``description``. The next attempt is told what the judges found, and
    CrewAI does not show it its last draft, so the draft goes along.
    """

    def judge(output: Any) -> tuple[bool, Any]:
        asked = task(output) if callable(task) else task
        if asked is None:
            asked = getattr(output, "description", None)
        text = output.raw
        try:
            ruling = panel.judge(text, input=asked, expected=expected)
            if not ruling.measured:
                raise NotMeasured(ruling.summary(), ruling)
        except NotMeasured as error:
            if not_measured == "pass":
                _log.warning("an output passed without a judgement: %s", error)
                return True, text
            return False, f"{error}. This says nothing of the output: give it again."
        if ruling.accepted:
            return True, text
        return False, f"{ruling.advice()}\n\nWhat was judged:\n{text}"

    return judge
