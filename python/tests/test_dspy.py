"""Real DSPy with its own dummy model."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import need

from venire import NotMeasured, Panel, UsageError
from venire.dspy import metric, reward

dspy: Any = need("dspy")


def _program(*answers: str) -> Any:
    from dspy.utils.dummies import DummyLM

    dspy.configure(lm=DummyLM([{"answer": answer} for answer in answers]))
    return dspy.Predict("question -> answer")


LONG, GOOD = "one two three four five six", "one two"


def test_best_of_n_takes_the_answer_that_the_panel_accepts(short: Panel) -> None:
    best = dspy.BestOfN(
        module=_program(LONG, GOOD, LONG),
        N=3,
        reward_fn=reward(short, output="answer", input="question"),
        threshold=1.0,
    )
    assert best(question="count").answer == GOOD


def test_refine_reads_the_reward_s_source_and_learns_nothing_of_the_judges(short: Panel) -> None:
    reward_fn = reward(short, output="answer")
    refine = dspy.Refine(module=_program(GOOD), N=2, reward_fn=reward_fn, threshold=1.0)
    assert "def reward_fn" in refine.reward_fn_code
    assert "words" not in refine.reward_fn_code and "threshold" not in refine.reward_fn_code
    assert refine(question="count").answer == GOOD


def test_what_could_not_be_measured_is_raised_and_never_a_number(same: Panel) -> None:
    judged = reward(same, output="answer")
    with pytest.raises(NotMeasured):
        judged({}, dspy.Prediction(answer="2"))
    best = dspy.BestOfN(
        module=_program(GOOD, GOOD), N=2, reward_fn=judged, threshold=0.0, fail_count=1
    )
    with pytest.raises(NotMeasured):
        best(question="1+1")
        best(question="1+1")


def test_a_metric_scores_a_whole_set_and_gives_gepa_its_feedback(short: Panel) -> None:
    devset = [dspy.Example(question=q).with_inputs("question") for q in ("a", "b")]
    judged = metric(short, output="answer", input="question")
    evaluate = dspy.Evaluate(devset=devset, metric=judged, num_threads=1, display_progress=False)
    result = evaluate(_program(GOOD, LONG))
    assert result.score == pytest.approx(50.0)
    scored = judged(devset[0], dspy.Prediction(answer=LONG))
    assert scored.score == 0.0 and "cut 2" in scored.feedback


def test_gepa_takes_the_metric_and_its_feedback_reaches_the_reflection(short: Panel) -> None:
    from dspy.utils.dummies import DummyLM

    seen: list[str] = []

    class Reflecting(DummyLM):  # type: ignore[misc]
        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            seen.append(str(prompt or messages))
            return super().forward(prompt=prompt, messages=messages, **kwargs)

    examples = [dspy.Example(question=q).with_inputs("question") for q in ("a", "b", "c", "d")]
    program = _program(*[LONG] * 200)
    reflection = Reflecting([{"new_instruction": "```\nBe short.\n```"}] * 20)
    gepa = dspy.GEPA(
        metric=metric(short, output="answer", input="question"),
        max_metric_calls=12,
        reflection_lm=reflection,
        num_threads=1,
    )
    gepa.compile(program, trainset=examples, valset=examples)
    assert any("cut 2" in text for text in seen), "the judges' words reach the reflecting model"


def test_a_misspelt_field_is_an_error_and_no_reward(short: Panel) -> None:
    with pytest.raises(UsageError, match="`anser`"):
        reward(short, output="anser")({}, dspy.Prediction(answer=GOOD))
    with pytest.raises(UsageError, match="`qestion`"):
        reward(short, output="answer", input="qestion")(
            {"question": "q"}, dspy.Prediction(answer=GOOD)
        )
