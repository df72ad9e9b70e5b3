"""verifiers' `Trace`, which prime-rl trains on.

| who groups | who computes advantages | null | several rows |
|---|---|---|---|
| the orchestrator: an episode per rollout | the orchestrator, from `rewards` | a reward of None in a trace that is not `ok`, so it is in no mean | a branch each, in one trace |
"""

from __future__ import annotations

from typing import Any

from ..rows import Group, Member, Row
from ._rows import numbers, rows_of, slots

REWARD = "reward"
"""The name of the reward in a trace."""

# `Trace.is_truncated` (v1/trace.py) knows cuts by these words; what is not here is no cut to it.
_STOPS = {"completed": "agent_completed", "budget": "max_total_tokens", "context_overflow": "max_total_tokens", "horizon": "max_turns"}


def to_verifiers(group: Group) -> list[dict[str, Any]]:
    """Per rollout the fields of a `Trace` (verifiers 0.4.0, v1/trace.py and v1/graph.py) beside `task` and `agent`: a node for each run of context and
    for each answer, whose ids put together are the row. `mask` is 1 where a token trains, and `logprobs` has only those.

    Messages have no text: ids are what is trained, and Paddock has the rest under `info["paddock"]["rollout_id"]`. A trace without a number has
    `ok` false and an error, because `Trace.reward` reads a reward of None as 0.
    """
    return [trace_of(group, member) for member in slots(group)]


def trace_of(group: Group, member: Member) -> dict[str, Any]:
    """The fields of one rollout's trace."""
    nodes: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    rows = rows_of(group, member)
    for row in rows:
        _branch(row, member.number is None, nodes, calls)
    ok = member.number is not None
    why = f"rollout {member.rollout_id} has no number ({member.out or 'no_number'})"
    end = member.end or "unknown"
    return {
        "nodes": nodes,
        "calls": calls,
        "rewards": {REWARD: {"score": member.number} if ok else None},
        "is_completed": True,
        "ok": ok,
        "stop_condition": _STOPS.get(end, end),
        "is_timeout": end == "agent_timeout",
        "errors": [] if ok else [{"type": "NoNumber", "message": why}],
        "info": {"paddock": {"run_id": group.run_id, "rollout_id": member.rollout_id, "claim_id": group.claim_id, "rows": [row.row_id for row in rows]}},
    }


def _branch(row: Row, masked: bool, nodes: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    """A row as a path of its own: what it shares with others trains in one of them only, by its mask."""
    ids, logprobs = list(row.token_ids), numbers(row, masked=masked)
    mask = [bool(bit) and not masked for bit in row.loss_mask]
    parent: int | None = None

    def add(role: str, start: int, end: int) -> None:
        nonlocal parent
        trains = mask[start:end]
        message = {"role": role, "content": None if role == "assistant" else ""}
        values = [value for value, bit in zip(logprobs[start:end], trains, strict=True) if bit]
        nodes.append({"parent": parent, "message": message, "sampled": role == "assistant", "token_ids": ids[start:end], "mask": trains, "logprobs": values})
        parent = len(nodes) - 1

    at = 0
    for start, end in row.turn_spans:
        if start > at:
            add("user", at, start)
        add("assistant", start, end)
        calls.append({"node": parent, "usage": {"prompt_tokens": start, "completion_tokens": end - start}})
        at = end
    if at < row.n_tokens:
        add("user", at, row.n_tokens)
    if sum(sum(node["mask"]) for node in nodes if node["sampled"]) < sum(mask):
        raise ValueError(f"row {row.row_id} trains tokens outside of its answers")
