"""What all converters slice alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..rows import Group, Member, Row

Several = Literal["refuse", "main_chain"]
"""What to do with a rollout of several rows where the trainer takes one: raise, or give the one that trains most."""

Null = Literal["raise", "masked_mean"]
"""How a rollout without a number is said where the trainer has no word for it: raise, or a mask of zeros and the mean of the others."""


class MultiRow(ValueError):
    """A rollout has several rows, and this trainer takes one."""


class NoNumber(ValueError):
    """A rollout has no number, and this trainer has no word for that. A 0 would say that the agent had failed."""


@dataclass(frozen=True)
class Response:
    """A row, cut where the first sampled token may stand."""

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    logprobs: list[float]


def response(row: Row, *, masked: bool = False) -> Response:
    """Prompt and everything behind it; with `masked`, nothing of it trains."""
    cut = row.prompt_len
    mask = list(row.loss_mask)
    if any(mask[:cut]):
        raise ValueError(f"row {row.row_id} has trained tokens in its prompt; trainers cut it off")
    ids = list(row.token_ids)
    logprobs = numbers(row, masked=masked)
    rest = [0] * (row.n_tokens - cut) if masked else mask[cut:]
    return Response(ids[:cut], ids[cut:], rest, logprobs[cut:])


def numbers(row: Row, *, masked: bool = False) -> list[float]:
    """Full-length logprobs with 0.0 on whatever does not train. Raises where one that trains is not known."""
    out = []
    for index, (bit, value) in enumerate(zip(row.loss_mask, row.logprobs, strict=True)):
        trained = bit and not masked
        if trained and math.isnan(value):
            raise ValueError(f"row {row.row_id}: the logprob of token {index} is not known, and it is to be trained")
        out.append(value if trained else 0.0)
    return out


def trained_runs(row: Row) -> list[tuple[int, int]]:
    """From where to where it trains without a gap."""
    mask = list(row.loss_mask)
    edges = [at for at in range(len(mask) + 1) if (mask[at - 1] if at else 0) != (mask[at] if at < len(mask) else 0)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def versions(row: Row) -> list[int]:
    """One ordinal per token, -1 on context. Where the engine leaves an interval open, its lower end: age is counted from there."""
    out = [-1] * row.n_tokens
    for start, end, low, _ in row.versions:
        out[start:end] = [low] * (end - start)
    return out


def extent(row: Row) -> tuple[int | None, int | None]:
    """The lowest and the highest ordinal that sampled a token of this row."""
    sampled = [(low, high) for _, _, low, high in row.versions if low >= 0]
    return min((low for low, _ in sampled), default=None), max((high for _, high in sampled), default=None)


def slots(group: Group) -> list[Member]:
    """The members in the order of their slots."""
    return sorted(group.members, key=lambda member: (member.slot, member.attempt))


def rows_of(group: Group, member: Member) -> list[Row]:
    """The rows of a member that may be handed on, its last one last."""
    rows = [row for row in group.rows_of(member.rollout_id) if row.usable or member.number is None]
    return sorted(rows, key=lambda row: row.is_last)


def some_rows(group: Group, member: Member, trainer: str) -> list[Row]:
    """The rows of a member, at least one: a trainer that computes the group's mean itself would else leave the rollout out of it, unsaid."""
    rows = rows_of(group, member)
    if not rows:
        raise NoNumber(
            f"rollout {member.rollout_id} has no row that may be handed on, and {trainer} would take its group for smaller. "
            "Fix: ask for top_up, or leave the round out."
        )
    return rows


def one_row(group: Group, member: Member, several: Several) -> tuple[Row | None, int]:
    """The row that stands for a rollout, and how many trained tokens are lost by that."""
    rows = rows_of(group, member)
    if len(rows) <= 1:
        return (rows[0] if rows else None), 0
    if several == "refuse":
        raise MultiRow(
            f"multi_row: rollout {member.rollout_id} has {len(rows)} rows and this trainer takes one. "
            'Fix: several="main_chain" trains the longest and counts what is lost.'
        )
    main = max(rows, key=lambda row: row.trained_tokens)
    return main, sum(row.trained_tokens for row in rows) - main.trained_tokens


def reward(group: Group, member: Member, null: Null) -> tuple[float, bool]:
    """A number for trainers that know no null, and whether the rollout has to be masked because it is not its own."""
    if member.number is not None:
        return member.number, False
    if null == "raise":
        why = member.out or "no_number"
        raise NoNumber(
            f"rollout {member.rollout_id} has no number ({why}), and this trainer has no word for that. "
            'Fix: leave it out, or null="masked_mean".'
        )
    known = [other.number for other in group.members if other.number is not None]
    if not known:
        raise NoNumber(f"no rollout of group {group.group_id} has a number. Fix: leave the round out.")
    return math.fsum(known) / len(known), True


def scored(group: Group) -> Sequence[tuple[Member, list[Row]]]:
    """Members with a number and their rows, for trainers whose groups may be of any size."""
    return [(member, rows_of(group, member)) for member in slots(group) if member.number is not None]
