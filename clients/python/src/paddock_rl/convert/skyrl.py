"""SkyRL's generator.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| `trajectory_ids[].instance_id` | the trainer, from `rewards` | no word for it: raises, or a mask of zeros and the mean | step-wise rows: contiguous, the reward on the last one, `is_last_step` |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group
from ._rows import Null, response, reward, rows_of, slots


def to_skyrl(group: Group, *, null: Null = "raise") -> dict[str, list[Any]]:
    """`GeneratorOutput` (skyrl 0.4, skyrl/train/generators/base.py) with one entry per row, those of a rollout side by side."""
    keys = (
        "prompt_token_ids",
        "response_ids",
        "rewards",
        "loss_masks",
        "stop_reasons",
        "rollout_logprobs",
        "trajectory_ids",
        "is_last_step",
    )
    out: dict[str, list[Any]] = {key: [] for key in keys}
    for repetition, member in enumerate(slots(group)):
        score, masked = reward(group, member, null)
        rows = rows_of(group, member)
        for index, row in enumerate(rows):
            cut = response(row, masked=masked)
            last = index == len(rows) - 1
            trajectory = {"instance_id": group.group_id, "repetition_id": repetition}
            found = (
                cut.prompt_ids,
                cut.response_ids,
                score if last else 0.0,
                cut.mask,
                "stop" if row.end == "completed" else "length",
                cut.logprobs,
                trajectory,
                last,
            )
            for key, value in zip(keys, found, strict=True):
                out[key].append(value)
    return out
