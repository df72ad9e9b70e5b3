"""SkyRL's generator.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| `trajectory_ids[].instance_id` | the trainer, from `rewards` | no word for it: raises, or a mask of zeros and the mean | step-wise rows: contiguous, the reward on the last one, `is_last_step` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rows import Group, Row
from ._rows import Null, response, reward, slots, some_rows


COLUMNS = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs", "is_last_step")


def to_skyrl(group: Group, *, null: Null = "raise") -> dict[str, list[Any]]:
    """`GeneratorOutput` (skyrl 0.4, skyrl/train/generators/base.py) with one entry per row, those of a rollout side by side."""
    out: dict[str, list[Any]] = {key: [] for key in (*COLUMNS, "trajectory_ids")}
    for repetition, member in enumerate(slots(group)):
        score, masked = reward(group, member, null)
        rows = some_rows(group, member, "SkyRL")
        for key, values in columns_of(rows, score, masked).items():
            out[key] += values
        out["trajectory_ids"] += [{"instance_id": group.group_id, "repetition_id": repetition}] * len(rows)
    return out


def columns_of(rows: Sequence[Row], score: float, masked: bool) -> dict[str, list[Any]]:
    """The columns of one trajectory, with the reward on its last row; with `masked` nothing of it trains."""
    out: dict[str, list[Any]] = {key: [] for key in COLUMNS}
    for index, row in enumerate(rows):
        cut = response(row, masked=masked)
        last = index == len(rows) - 1
        stop = "stop" if row.end == "completed" else "length"
        found = (cut.prompt_ids, cut.response_ids, score if last else 0.0, cut.mask, stop, cut.logprobs, last)
        for key, value in zip(COLUMNS, found, strict=True):
            out[key].append(value)
    return out
