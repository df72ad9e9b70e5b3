"""OpenRLHF's agent executor.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| copies of the prompt | the trainer, from `reward` | no word for it: raises, or no action ranges and the mean | refused, or the main chain |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Row
from ._rows import NoNumber, Null, Several, numbers, one_row, reward, slots, trained_runs

_CUT = {"budget", "context_overflow", "horizon"}


def to_openrlhf(group: Group, *, several: Several = "refuse", null: Null = "raise") -> list[dict[str, Any]]:
    """Per rollout what `AgentExecutorBase.execute` returns (OpenRLHF 0.11.2, openrlhf/utils/agent.py): the whole sequence, the
    ranges of it that train, and logprobs of full length with 0.0 on context. `prompt` and `label` are your data set's.
    """
    out = []
    for member in slots(group):
        score, masked = reward(group, member, null)
        row, lost = one_row(group, member, several)
        if row is None:
            raise NoNumber(f"rollout {member.rollout_id} has no row, and OpenRLHF wants one per prompt. Fix: ask for top_up.")
        out.append(response_of(row, score, masked, lost))
    return out


def response_of(row: Row, score: float, masked: bool, lost: int) -> dict[str, Any]:
    """What `execute` returns of one row, beside the prompt and its label."""
    return {
        "observation_tokens": list(row.token_ids),
        "action_ranges": [] if masked else trained_runs(row),
        "rollout_log_probs": numbers(row, masked=masked),
        "reward": score,
        "scores": score,
        "truncated": row.end in _CUT,
        "extra_logs": {"lost_tokens": lost, "masked": int(masked)},
    }
