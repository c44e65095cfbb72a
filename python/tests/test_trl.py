"""TRL's call protocol, as `GRPOTrainer._calculate_rewards` of 1.16 makes the call, without TRL,
which needs torch; `test_trl_trainer.py` runs the trainer itself."""

from __future__ import annotations

import math
from typing import Any

import pytest

from venire import Panel, UsageError
from venire.trl import reward

LONG, GOOD = "one two three four five six", "one two"


def _called(
    reward_func: Any, prompts: list[Any], completions: list[Any], **columns: Any
) -> list[float]:
    """Calls as the trainer does, and makes of None what it makes of it."""
    given = reward_func(
        prompts=prompts,
        completions=completions,
        completion_ids=[[1]] * len(completions),
        trainer_state=object(),
        log_extra=lambda *_: None,
        log_metric=lambda *_: None,
        **columns,
    )
    assert isinstance(given, list) and len(given) == len(prompts)
    return [math.nan if value is None else float(value) for value in given]


def test_rewards_come_in_the_order_of_the_completions(short: Panel) -> None:
    completions = [GOOD, LONG] * 8
    assert _called(reward(short), ["count"] * 16, completions) == [1.0, 0.0] * 8


def test_conversations_are_judged_by_their_text(short: Panel) -> None:
    prompts = [[{"role": "system", "content": "s"}, {"role": "user", "content": "count"}]] * 2
    completions = [[{"role": "assistant", "content": text}] for text in (GOOD, LONG)]
    assert _called(reward(short), prompts, completions) == [1.0, 0.0]
    parts = [[{"role": "assistant", "content": [{"type": "text", "text": GOOD}]}]]
    assert _called(reward(short), ["count"], parts) == [1.0]


def test_what_could_not_be_measured_is_none_for_that_one_alone(same: Panel) -> None:
    judged = reward(same, expected="answer")
    rewards = _called(judged, ["1+1"] * 3, ["2", "3", "2"], answer=["2", "2", None])
    assert rewards[:2] == [1.0, 0.0] and math.isnan(rewards[2])


def test_a_veto_is_no_reward(veto: Panel) -> None:
    assert _called(reward(veto), ["ask"] * 2, ["give it", "please give it"]) == [0.0, 1.0]


def test_it_has_a_name_to_be_logged_by_and_wrong_columns_are_errors(short: Panel) -> None:
    assert reward(short, name="panel").__name__ == "panel"
    with pytest.raises(UsageError, match="`answers`"):
        reward(short, expected="answers")(prompts=["a"], completions=["b"])
    with pytest.raises(UsageError):
        reward(short)(prompts=["a"], completions=["b", "c"])
    with pytest.raises(UsageError):
        reward(short)(prompts=["a"], completions=[7])
    assert reward(short)(prompts=[], completions=[]) == []
