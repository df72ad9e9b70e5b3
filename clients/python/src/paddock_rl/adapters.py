"""What each adapter does with a group, in four words: the table of README.md, which a test holds against the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ADAPTERS", "Adapter"]


@dataclass(frozen=True)
class Adapter:
    """One adapter. Where there are several words the first is the default."""

    name: str
    """A module of `paddock_rl`, or one of its functions."""
    groups: str
    """By what the trainer knows a group."""
    advantages: str
    """Who computes them: `trainer`, `you`, or `adapter`."""
    null: Sequence[str]
    """A rollout without a number. `left_out`: nothing that the trainer would count, in no mean. `masked_mean`: the mean of the others, and a mask of
    zeros. `raise`: `NoNumber`. It is never 0."""
    several: Sequence[str]
    """A rollout of several rows. `all`: each is given. `main_chain`: the one that trains most, and what is lost is counted. `refuse`: `MultiRow`."""


_ONE = ("refuse", "main_chain")
_NO_WORD = ("raise", "masked_mean")

ADAPTERS: Sequence[Adapter] = (
    Adapter("trl", "order of rows", "trainer", ("left_out", "masked_mean", "raise"), _ONE),
    Adapter("trl_async", "`group_id`", "adapter", ("left_out",), ("all",)),
    Adapter("trl_harness", "`seed` of a session", "trainer", ("left_out",), ("all",)),
    Adapter("verl", "`uid`", "trainer", ("left_out", "masked_mean", "raise"), ("all",)),
    Adapter("slime", "`group_index`", "trainer", ("raise", "left_out", "masked_mean"), ("refuse", "main_chain", "all")),
    Adapter("skyrl", "`instance_id`", "trainer", _NO_WORD, ("refuse", "main_chain", "all")),
    Adapter("areal", "the workflow", "trainer", ("left_out",), _ONE),
    Adapter("openrlhf", "copies of the prompt", "trainer", _NO_WORD, _ONE),
    Adapter("nemo_gym", "`_ng_task_index`", "trainer", _NO_WORD, _ONE),
    Adapter("agentlightning", "equal inputs side by side", "trainer", ("left_out",), ("all",)),
    Adapter("verifiers", "the orchestrator", "trainer", ("left_out",), ("all",)),
    Adapter("to_trl", "order of rows", "trainer", ("left_out",), _ONE),
    Adapter("to_trl_async", "`group_id`", "you", ("left_out",), ("all",)),
    Adapter("to_verl", "`uid`", "trainer", _NO_WORD, ("all",)),
    Adapter("to_slime", "`group_index`", "trainer", _NO_WORD, ("all",)),
    Adapter("to_skyrl", "`instance_id`", "trainer", _NO_WORD, ("all",)),
    Adapter("to_areal", "the workflow", "trainer", ("left_out",), ("all",)),
    Adapter("to_verifiers", "the orchestrator", "trainer", ("left_out",), ("all",)),
    Adapter("to_tinker", "you", "you", ("left_out",), ("all",)),
    Adapter("to_openrlhf", "copies of the prompt", "trainer", _NO_WORD, _ONE),
    Adapter("to_nemo", "`idx`", "trainer", _NO_WORD, _ONE),
)
"""All there are."""
