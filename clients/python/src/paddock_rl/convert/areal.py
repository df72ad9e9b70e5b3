"""AReaL's workflow.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| the workflow: one call per prompt | the trainer, from `rewards` | None: rejected | a tensor dict each, with the whole reward |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Row
from ._rows import numbers, rows_of, slots, versions


def to_areal(group: Group) -> list[list[dict[str, list[Any]]] | None]:
    """Per rollout what `RolloutWorkflow.arun_episode` returns (areal 1.0.4, api/workflow_api.py and experimental/openai/types.py), as lists of shape [1, T]:
    `input_ids, attention_mask, loss_mask, logprobs, versions` (-1 on context), and `rewards` of shape [1]. A missing reward would
    be read as 0.0 there, so a rollout without a number is None; so is one without a row.
    """
    out: list[list[dict[str, list[Any]]] | None] = []
    for member in slots(group):
        rows = rows_of(group, member)
        if member.number is None or not rows:
            out.append(None)
            continue
        out.append([tensors_of(row, member.number) for row in rows])
    return out


def tensors_of(row: Row, reward: float) -> dict[str, list[Any]]:
    """The lists of one row."""
    return {
        "input_ids": [list(row.token_ids)],
        "attention_mask": [[True] * row.n_tokens],
        "loss_mask": [list(row.loss_mask)],
        "logprobs": [numbers(row)],
        "versions": [versions(row)],
        "rewards": [reward],
    }
