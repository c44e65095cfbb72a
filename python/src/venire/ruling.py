"""The ruling: what a panel says about one case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from venire.errors import NotMeasured, VenireError

Decision = Literal["accept", "reject", "undecided"]

_DECISIONS: tuple[Decision, ...] = ("accept", "reject", "undecided")
_VETOES = ("required_judge", "required_criterion")


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise VenireError(f"the ruling's `{name}` is {value!r}: expected a number")
    return float(value)


@dataclass(frozen=True)
class Ruling:
    """What a panel says about one case, read from the JSON of ``venire score --json``."""

    decision: Decision
    """``accept``, ``reject``, or ``undecided`` where it could not be measured."""
    score: float | None
    """The median of the votes, in [0, 1]; None unless decided, and where a required judge
    rejects while too few others voted."""
    threshold: float
    """The score that an accepted output must reach."""
    feedback: tuple[str, ...]
    """What the judges found, merged, one finding an entry."""
    reason: str
    """Why it was decided so, as the name of the kind: ``threshold``, ``no_quorum``, ..."""
    raw: Mapping[str, Any] = field(repr=False)
    """The whole ruling, with every judge's verdict."""

    @classmethod
    def from_json(cls, raw: object) -> Ruling:
        """Reads a ruling; anything that is none is an error and never a score."""
        if not isinstance(raw, Mapping):
            raise VenireError(f"expected a ruling as a JSON object, found {type(raw).__name__}")
        found = raw.get("decision")
        decision = next((known for known in _DECISIONS if known == found), None)
        if decision is None:
            raise VenireError(f"the ruling's `decision` is {found!r}: expected {_DECISIONS}")
        given = raw.get("score")
        score = None if given is None else _number(given, "score")
        if score is not None and not 0.0 <= score <= 1.0:
            raise VenireError(f"the ruling's `score` is {score}: expected 0 to 1")
        if decision == "accept" and score is None:
            raise VenireError("the ruling says `accept` and has no score")
        findings = raw.get("feedback") or ()
        reason = raw.get("reason")
        return cls(
            decision=decision,
            score=None if decision == "undecided" else score,
            threshold=_number(raw.get("threshold"), "threshold"),
            feedback=tuple(_words(finding) for finding in findings),
            reason=str(reason.get("kind", "")) if isinstance(reason, Mapping) else "",
            raw=raw,
        )

    @property
    def measured(self) -> bool:
        """Whether anything was decided."""
        return self.decision != "undecided"

    @property
    def accepted(self) -> bool:
        """Whether the panel accepts. False does not mean that it rejects: see ``measured``."""
        return self.decision == "accept"

    @property
    def reward(self) -> float | None:
        """The score as a loop should be paid by it: 0 where a required judge or criterion
        rejects, whatever the median; None where nothing was decided."""
        return 0.0 if self.reason in _VETOES else self.score

    def measured_reward(self) -> float:
        """As ``reward``, raising ``NotMeasured`` where there is none."""
        reward = self.reward
        if reward is None:
            raise NotMeasured(self.summary(), self)
        return reward

    def summary(self) -> str:
        """The decision and why, in one line."""
        used, declared = self.raw.get("votes_used"), self.raw.get("votes_declared")
        votes = f"{used} of {declared} votes"
        if not self.measured:
            missing = [
                f"{verdict.get('judge')}: {verdict.get('status')}"
                + (f" ({verdict['detail']})" if verdict.get("detail") else "")
                for verdict in self.raw.get("verdicts") or ()
                if verdict.get("status") != "ok"
            ]
            because = f"; {'; '.join(missing)}" if missing else ""
            return f"not measured ({self.reason}, {votes}){because}"
        score = "no score" if self.score is None else f"score {self.score:.2f}"
        veto = " by a required judge or criterion" if self.reason in _VETOES else ""
        return f"{self.decision}{veto}: {score}, threshold {self.threshold:.2f}, {votes}"

    def advice(self) -> str:
        """The decision and what to change, for the next prompt of an agent."""
        lines = [self.summary()]
        lines += [f"- {finding}" for finding in self.feedback]
        return "\n".join(lines)


def _words(finding: object) -> str:
    if not isinstance(finding, Mapping):
        return str(finding)
    criterion, text = finding.get("criterion"), str(finding.get("text", ""))
    return f"{criterion}: {text}" if criterion else text
