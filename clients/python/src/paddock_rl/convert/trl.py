"""TRL's `GRPOTrainer.rollout_func` and its asynchronous worker's `RolloutSample`. `paddock_rl.trl` is the whole way for the first.

| | `to_trl` | `to_trl_async` |
|---|---|---|
| who groups | the order of rows: n in a row | `group_id` |
| who computes advantages | the trainer, from a reward function | you: `advantages(group, "trl")` |
| null | a reward of None, which its baseline leaves out | not queued |
| several rows | refused, or the main chain | a sample each |
"""

from __future__ import annotations

from typing import Any

from ..advantages import Advantages
from ..rows import Group
from ._rows import NoNumber, Several, extent, numbers, one_row, response, slots


def to_trl(group: Group, *, several: Several = "refuse") -> dict[str, list[Any]]:
    """What `rollout_func(prompts, trainer)` returns for the n equal prompts of one group (trl 1.13.0, trainer/grpo_trainer.py,
    `RolloutFunc`): `prompt_ids, completion_ids, logprobs, env_mask`, and further keys, which reach reward functions by name.

    The trainer reads `logprobs` only with vLLM and importance sampling correction, and takes exactly one row per prompt. A rollout
    that never called the model has no row: raises `NoNumber`.
    """
    keys = ("prompt_ids", "completion_ids", "logprobs", "env_mask", "reward", "rollout_id", "row_id", "lost_tokens")
    out: dict[str, list[Any]] = {key: [] for key in keys}
    for member in slots(group):
        row, lost = one_row(group, member, several)
        if row is None:
            raise NoNumber(f"rollout {member.rollout_id} has no row, and TRL wants one per prompt. Fix: ask for top_up.")
        cut = response(row, masked=member.number is None)
        found = (cut.prompt_ids, cut.response_ids, cut.logprobs, cut.mask, member.number, row.rollout_id, row.row_id, lost)
        for key, value in zip(keys, found, strict=True):
            out[key].append(value)
    return out


def to_trl_async(group: Group, computed: Advantages, group_number: int) -> list[dict[str, Any]]:
    """`RolloutSample`s for the buffer of a `RolloutWorkerProtocol` (trl 1.13.0, experimental/async_grpo): full length, 0 and 0.0 on
    context. trl 1.16.0 takes numpy's arrays: `paddock_rl.trl.rollout_samples`. `group_number` is TRL's integer id of the group; epochs are counted in distinct ones.
    """
    out = []
    rows = {row.row_id: row for row in group.rows}
    for found in computed.rows:
        if found.advantage is None:
            continue
        row = rows[found.row_id]
        lowest, _ = extent(row)
        if lowest is None:
            raise ValueError(f"row {row.row_id} names no version of its weights, and TRL drops rows by version")
        out.append(
            {
                "prompt": [],
                "completion": [],
                "input_ids": list(row.token_ids),
                "completion_mask": list(row.loss_mask),
                "old_log_probs": numbers(row),
                "advantage": found.advantage,
                "model_version": lowest,
                "group_id": group_number,
                "metrics": {"reward": found.reward_used},
            }
        )
    return out
