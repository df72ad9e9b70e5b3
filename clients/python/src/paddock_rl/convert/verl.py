"""verl's agent loop.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| `uid` | the trainer, from `reward_score` | no word for it: raises, or a mask of zeros and the mean | a list of outputs; only the last one is scored and the number copied |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Row
from ._rows import Null, extent, response, reward, slots, some_rows


def to_verl(group: Group, *, null: Null = "raise") -> list[list[dict[str, Any]]]:
    """Per rollout a list of `AgentLoopOutput` fields (verl 0.9.1 and 0.10.0.dev, experimental/agent_loop/agent_loop.py), as the v1 loop takes
    them. `extra_fields.min_global_steps` and `max_global_steps` are versions of the row's sampled tokens.

    Where `masked_mean` stands in for a null, the trainer's deviation is computed over one number more.
    """
    out = []
    for session, member in enumerate(slots(group)):
        score, masked = reward(group, member, null)
        rows = some_rows(group, member, "verl")
        out.append([output_of(row, score, masked, group.group_id, session, index) for index, row in enumerate(rows)])
    return out


def output_of(row: Row, score: float, masked: bool, uid: str, session: int, index: int) -> dict[str, Any]:
    """The fields of one output; with `masked` nothing of it trains."""
    cut = response(row, masked=masked)
    lowest, highest = extent(row)
    return {
        "prompt_ids": cut.prompt_ids,
        "response_ids": cut.response_ids,
        "response_mask": cut.mask,
        "response_logprobs": cut.logprobs,
        "reward_score": score,
        "num_turns": len(row.turn_spans),
        "metrics": {},
        "extra_fields": {
            "uid": uid,
            "session": session,
            "index": index,
            "rollout_id": row.rollout_id,
            "row_id": row.row_id,
            "min_global_steps": lowest,
            "max_global_steps": highest,
            # `_agent_loop_postprocess` copies it to siblings and does not ask whether it is there.
            "reward_extra_info": {},
        },
    }
