"""OpenEvolve: an evaluator of evolved programs.

Not measured: ``combined_score`` is minus infinity, so that the program is never chosen before
one that was measured, and ``artifacts`` say that nothing was measured; left out, OpenEvolve
would take the mean of whatever else is there, and an exception would be a 0.
``not_measured="raise"`` has it try again (``max_retries``) and then note a 0 of its own.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from venire.errors import NotMeasured
from venire.panel import Panel

__all__ = ["evaluator"]

_log = logging.getLogger("venire")


def evaluator(
    panel: Panel,
    *,
    task: str | None = None,
    not_measured: Literal["minus_infinity", "raise"] = "minus_infinity",
) -> Callable[[str], Any]:
    """An ``evaluate`` for an evaluation file: ``evaluate = evaluator(Panel("panel.toml"))``.

    The program's text is judged as the output of ``task``. What the judges found reaches the
    later prompts as the artifact ``feedback``.
    """

    def evaluate(program_path: str) -> Any:
        from openevolve.evaluation_result import EvaluationResult

        text = Path(program_path).read_text(encoding="utf-8")
        try:
            ruling = panel.judge(text, input=task)
            score = ruling.measured_reward()
        except NotMeasured as error:
            if not_measured == "raise":
                raise
            _log.warning("a program was not judged: %s", error)
            return EvaluationResult(
                metrics={"combined_score": -math.inf, "measured": 0.0},
                artifacts={"feedback": f"{error}. This says nothing of the program."},
            )
        return EvaluationResult(
            metrics={"combined_score": score, "measured": 1.0},
            artifacts={"feedback": ruling.advice()},
        )

    return evaluate
