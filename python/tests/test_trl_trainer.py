"""Real TRL: `GRPOTrainer` trains a model of a few thousand parameters, made here, by our reward."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import need

from venire import Panel
from venire.trl import reward

need("trl")

WORDS = ["<pad>", "<eos>", "<unk>", "count", "one", "two", "three", "four", "five", "six"]


def _trained(folder: Path, rewards: list[Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trains two steps on the processor, and gives what the trainer logged of each."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    sizes = {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 1}
    config = GPT2Config(
        vocab_size=len(WORDS), bos_token_id=1, eos_token_id=1, pad_token_id=0, **sizes
    )
    trainer = GRPOTrainer(
        model=GPT2LMHeadModel(config),
        processing_class=tokenizer,
        reward_funcs=rewards,
        train_dataset=Dataset.from_list(rows),
        args=GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            max_steps=2,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=6,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
        ),
    )
    trainer.train()
    return [entry for entry in trainer.state.log_history if "reward" in entry]


def test_the_trainer_is_paid_by_the_panel(short: Panel, tmp_path: Path) -> None:
    logged = _trained(tmp_path, [reward(short)], [{"prompt": "count one"}] * 4)
    assert len(logged) == 2
    for entry in logged:
        assert 0.0 <= entry["rewards/venire/mean"] <= 1.0, entry
        assert entry["reward"] == pytest.approx(entry["rewards/venire/mean"])


def test_what_could_not_be_measured_is_left_out_of_the_trainer_s_sum(
    same: Panel, tmp_path: Path
) -> None:
    """Without a reference nothing is measured: the other reward alone is what is learnt from."""
    asked: list[int] = []

    def other(completions: list[Any], **_: Any) -> list[float]:
        asked.append(len(completions))
        return [0.25] * len(completions)

    rows = [{"prompt": "count one", "answer": None}] * 4
    logged = _trained(tmp_path, [reward(same, expected="answer"), other], rows)
    assert asked and len(logged) == 2
    for entry in logged:
        # What the trainer logs of a mean over nothing.
        assert entry["rewards/venire/mean"] is None or math.isnan(entry["rewards/venire/mean"])
        assert entry["reward"] == pytest.approx(0.25), entry
