"""TRL: a reward function for GRPO and its kin.

Not measured: the reward is None, which TRL leaves out of the group's sum. When every reward
function says None for a completion, the group's mean is spoilt; TRL and the log ``venire``
both warn of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from venire.errors import NotMeasured, UsageError
from venire.panel import Panel

__all__ = ["reward"]

_log = logging.getLogger("venire")


def reward(
    panel: Panel,
    *,
    expected: str | None = None,
    context: str | None = None,
    workers: int = 8,
    name: str = "venire",
) -> Callable[..., list[float | None]]:
    """A ``reward_funcs`` entry: plain or conversational prompts and completions in, a reward
    or None for each out, in their order.

    ``expected`` and ``context`` name columns of the data set. ``workers`` completions are
    judged at a time. ``name`` is what TRL logs it as.
    """
    if workers < 1:
        raise UsageError(f"`workers` is {workers}: expected at least 1")

    def reward_func(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        def one(at: int) -> float | None:
            try:
                ruling = panel.judge(
                    _text(completions[at]),
                    input=_text(prompts[at]),
                    expected=_column(columns, expected, at),
                    context=_column(columns, context, at),
                )
                return ruling.measured_reward()
            except NotMeasured as error:
                _log.warning("a completion has no reward: %s", error)
                return None

        if len(prompts) != len(completions):
            raise UsageError(f"{len(prompts)} prompts and {len(completions)} completions")
        with ThreadPoolExecutor(max_workers=workers) as pool:
            return list(pool.map(one, range(len(completions))))

    reward_func.__name__ = name
    return reward_func


def _column(columns: dict[str, Any], name: str | None, at: int) -> str | None:
    if name is None:
        return None
    if name not in columns:
        raise UsageError(f"the data set has no column `{name}`")
    value = columns[name][at]
    return None if value is None else str(value)


def _text(value: Any) -> str:
    """A plain text, or a conversation with the names of its speakers where there are
    several messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(m, dict) and "content" in m for m in value):
        if len(value) == 1:
            return _content(value[0]["content"])
        return "\n\n".join(f"{m.get('role', 'user')}: {_content(m['content'])}" for m in value)
    raise UsageError(f"expected text or a list of messages, found {type(value).__name__}")


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)
