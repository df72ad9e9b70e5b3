"""NeMo-RL's message log.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| `idx`, n times the same | the trainer, from `reward` | `loss_multiplier` 0, which stays in the mean: raises, or the mean as its reward | refused, or the main chain: prefixes have to be contiguous |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Row
from ._rows import NoNumber, Null, Several, numbers, one_row, reward, slots

_CUT = {"budget", "context_overflow", "horizon"}


def to_nemo(group: Group, idx: int, *, several: Several = "refuse", null: Null = "raise") -> list[dict[str, Any]]:
    """Per rollout a `DatumSpec` with its reward (NeMo-RL at 7ea279abf, nemo_rl/data/interfaces.py and
    environments/nemo_gym.py): messages in order, of which those with `generation_logprobs` train.
    """
    out = []
    for member in slots(group):
        score, masked = reward(group, member, null)
        row, lost = one_row(group, member, several)
        if row is None:
            raise NoNumber(f"rollout {member.rollout_id} has no row, and NeMo-RL wants one per prompt. Fix: ask for top_up.")
        out.append(
            {
                "idx": idx,
                "message_log": _messages(row, masked),
                "length": row.n_tokens,
                "reward": score,
                "loss_multiplier": 0.0 if masked else 1.0,
                "truncated": row.end in _CUT,
                "extra_env_info": {"rollout_id": row.rollout_id, "row_id": row.row_id, "lost_tokens": lost},
            }
        )
    return out


def _messages(row: Row, masked: bool) -> list[dict[str, Any]]:
    """The row in runs of equal mask; what comes before the first answer is the user's, what comes between is the environment's."""
    ids = list(row.token_ids)
    mask = list(row.loss_mask)
    logprobs = numbers(row, masked=masked)
    out: list[dict[str, Any]] = []
    start = 0
    for end in range(1, len(ids) + 1):
        if end < len(ids) and mask[end] == mask[start]:
            continue
        message: dict[str, Any] = {"role": "user" if not out else "environment", "token_ids": ids[start:end]}
        if mask[start]:
            message["role"] = "assistant"
            message["generation_logprobs"] = logprobs[start:end]
        message["token_loss_mask"] = [0 if masked else bit for bit in mask[start:end]]
        out.append(message)
        start = end
    return out
