"""OpenHands: a critic that judges the agent's answer when it finishes.

Not measured: OpenHands takes an exception for success, so there is none, not even for a
panel that can't be used: the score is 0 with ``metadata["measured"] = False``, and the agent
is asked to go on, ``max_iterations`` times at most. ``not_measured="finish"`` ends the
conversation instead.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

from openhands.sdk.critic.base import CriticBase
from openhands.sdk.critic.result import CriticResult
from openhands.sdk.event import ActionEvent, MessageEvent
from openhands.sdk.tool.builtins.finish import FinishAction
from pydantic import Field, model_validator

from venire.errors import NotMeasured, UsageError, VenireError
from venire.panel import TIMEOUT, Panel

__all__ = ["PanelCritic"]

_log = logging.getLogger("venire")


class PanelCritic(CriticBase):  # type: ignore[misc]
    """A panel as a critic; set ``iterative_refinement`` to have its feedback acted on.

    An accepted answer scores at least ``iterative_refinement.success_threshold``, and a
    rejected one stays below it, whatever the panel's own threshold.
    """

    config: str = "panel.toml"
    """The panel file, where there is no ``url``."""
    url: str | None = None
    """A ``venire serve``."""
    arguments: list[str] = Field(default_factory=list)
    """Further arguments of ``venire score``."""
    timeout: float = TIMEOUT
    """Seconds for one judgement."""
    not_measured: Literal["retry", "finish"] = "retry"
    """What to do when an answer could not be measured."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> PanelCritic:
        # A missing panel is told now: in `evaluate` it could only be a score of 0.
        try:
            self._panel()
        except UsageError as error:
            raise ValueError(str(error)) from None
        if self.iterative_refinement and self.iterative_refinement.success_threshold == 0.0:
            raise ValueError("a `success_threshold` of 0 accepts every answer")
        return self

    def _panel(self) -> Panel:
        if self.url is not None:
            return Panel.at(self.url, timeout=self.timeout)
        return Panel(self.config, arguments=self.arguments, timeout=self.timeout)

    def evaluate(self, events: Sequence[Any], git_patch: str | None = None) -> CriticResult:
        """Judges the last answer, or the patch where the host gives one."""
        try:
            answer = git_patch or _answer(events)
            if answer is None:
                raise NotMeasured("not measured: the agent has given no answer yet")
            ruling = self._panel().judge(answer, input=_task(events))
            if not ruling.measured:
                raise NotMeasured(ruling.summary(), ruling)
        except (VenireError, OSError) as error:
            _log.warning("an answer of the agent was not judged: %s", error)
            return CriticResult(
                score=0.0,
                message=str(error),
                metadata={"measured": False, "decision": "undecided"},
            )
        score = ruling.reward or 0.0
        if self.iterative_refinement is not None:
            bar = self.iterative_refinement.success_threshold
            score = max(score, bar) if ruling.accepted else min(score, math.nextafter(bar, 0.0))
        return CriticResult(
            score=score,
            message=ruling.advice(),
            metadata={
                "measured": True,
                "decision": ruling.decision,
                "score": ruling.score,
                "threshold": ruling.threshold,
            },
        )

    def should_refine(self, critic_result: CriticResult) -> bool:
        """Whether the agent is asked to go on."""
        if not _measured(critic_result) and self.not_measured == "finish":
            return False
        return bool(super().should_refine(critic_result))

    def get_followup_prompt(self, critic_result: CriticResult, iteration: int) -> str:
        """What the agent is told."""
        if not _measured(critic_result):
            return (
                f"Your answer could not be judged (attempt {iteration}): "
                f"{critic_result.message}\nCheck it against the task yourself, and finish again."
            )
        return (
            f"Your answer was judged and not accepted (attempt {iteration}).\n"
            f"{critic_result.message}\nChange what was found, and finish again."
        )


def _measured(result: CriticResult) -> bool:
    return bool((result.metadata or {}).get("measured"))


def _message_text(event: MessageEvent) -> str:
    parts = [getattr(part, "text", "") for part in event.llm_message.content]
    return "\n".join(part for part in parts if part)


def _answer(events: Sequence[Any]) -> str | None:
    for event in reversed(events):
        if isinstance(event, ActionEvent) and isinstance(event.action, FinishAction):
            return str(event.action.message)
        if isinstance(event, MessageEvent) and event.source == "agent":
            return _message_text(event)
    return None


def _task(events: Sequence[Any]) -> str | None:
    for event in events:
        if isinstance(event, MessageEvent) and event.source == "user":
            return _message_text(event) or None
    return None
