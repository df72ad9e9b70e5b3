"""slime's `Sample`, and that of vime and miles.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| `group_index` | the trainer, over `reward` of all samples | `remove_sample`, which masks but stays in the mean: raises, or the mean as its reward | a list of samples with one `rollout_id` and the whole reward each |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Row
from ._rows import Null, response, reward, slots, some_rows

_CUT = {"budget", "context_overflow", "horizon", "agent_timeout"}


def to_slime(group: Group, group_index: int, first_index: int = 0, *, null: Null = "raise") -> list[list[dict[str, Any]]]:
    """Per rollout a list of `Sample` fields (slime at 624b824a8, slime/utils/types.py), as `generate` returns them. `loss_mask` and
    `rollout_log_probs` are as long as the response. `rollout_id` is the integer that siblings share: loss is averaged over it.
    """
    out = []
    for place, member in enumerate(slots(group)):
        score, masked = reward(group, member, null)
        ids = {"group_index": group_index, "index": first_index + place, "rollout_id": first_index + place}
        out.append([{**ids, **sample_of(row, score, masked)} for row in some_rows(group, member, "slime")])
    return out


def sample_of(row: Row, score: float, masked: bool) -> dict[str, Any]:
    """The fields of one sample; with `masked` nothing of it trains."""
    cut = response(row, masked=masked)
    return {
        "tokens": cut.prompt_ids + cut.response_ids,
        "response_length": len(cut.response_ids),
        "loss_mask": cut.mask,
        "rollout_log_probs": cut.logprobs,
        "reward": score,
        "weight_versions": [str(low) for _, _, low, _ in row.versions if low >= 0],
        "remove_sample": masked,
        "status": "truncated" if row.end in _CUT else "aborted" if masked else "completed",
        "metadata": {"rollout": row.rollout_id, "row": row.row_id},
    }
