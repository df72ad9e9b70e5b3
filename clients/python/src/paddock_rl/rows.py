"""A settled round as a trainer gets it, and its two encodings: `application/vnd.paddock.rows` and JSON."""

from __future__ import annotations

import gzip
import json
import math
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import Malformed

MAGIC = b"PDKROWS1"
MEDIA_TYPE = "application/vnd.paddock.rows"

_DTYPES: Mapping[str, tuple[str, int]] = {"i4": ("i", 4), "u1": ("B", 1), "f4": ("f", 4)}
_ARRAYS: Mapping[str, str] = {"token_ids": "i4", "loss_mask": "u1", "logprobs": "f4"}
_OPTIONAL: Mapping[str, str] = {"entropies": "f4", "observation_mask": "u1", "ref_logprobs": "f4", "teacher_logprobs": "f4"}

Span = tuple[int, int]
"""A half-open range of token positions of a row."""


@dataclass(frozen=True)
class Member:
    """A rollout of the round.

    `out` is null for a usable member, else why it has no part in the round's baseline. `reward` is null where the verdict has no
    number, and null is never 0.
    """

    rollout_id: str
    slot: int
    attempt: int
    out: str | None
    end: str | None
    cut: str | None
    reward: float | None
    status: str | None
    sampled_tokens: int
    harness: str | None
    labels: Mapping[str, str]
    findings: Sequence[Any]
    forked_from: Mapping[str, Any] | None
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def filtered(self) -> str | None:
        """Why the run's selector left it out: its reward counts in the baseline, and its rows do not train. None: it did not."""
        found: str | None = self.raw.get("filtered")
        return found

    @property
    def number(self) -> float | None:
        """The reward of a usable member; null for all others."""
        return self.reward if self.out is None else None


@dataclass(frozen=True)
class Row:
    """A path through one rollout: exact ids, and which of them train. The arrays have `n_tokens` entries, context included.

    `logprobs` is 0.0 on context and NaN where it is not known. `versions` holds `(start, end, lowest, highest)` with ordinals of
    weights, -1 on context. `weight` is 1/K where the rollout has K rows.
    """

    row_id: str
    rollout_id: str
    session_id: str
    role: str | None
    node_ids: Sequence[str]
    is_last: bool
    fork_reason: str | None
    end: str | None
    cut: str | None
    usable: bool
    unusable_reason: str | None
    reward: float | None
    weight: float
    rows_of_rollout: int
    trained_tokens_of: Mapping[str, int]
    prompt_len: int
    n_tokens: int
    versions: Sequence[tuple[int, int, int, int]]
    temperatures: Sequence[tuple[int, int, float | None]]
    turn_spans: Sequence[Span]
    observation_spans: Sequence[Span]
    turn_nodes: Sequence[int] | None
    """Index in `Group.nodes` of each turn; None but in row mode `tree`."""
    mask_reasons: Sequence[tuple[int, int, str]]
    logprob_kind: str | None
    media: Sequence[Any]
    raw: Mapping[str, Any] = field(repr=False)
    _arrays: Mapping[str, _Slice] = field(repr=False)

    @property
    def token_ids(self) -> memoryview:
        found: memoryview = self._arrays["token_ids"].view()
        return found

    @property
    def loss_mask(self) -> memoryview:
        found: memoryview = self._arrays["loss_mask"].view()
        return found

    @property
    def logprobs(self) -> memoryview[float]:
        found: memoryview[float] = self._arrays["logprobs"].view()
        return found

    @property
    def entropies(self) -> memoryview[float] | None:
        """Of sampled tokens in nats, as far as the recorded alternatives show it, so a lower bound; NaN elsewhere. None where none is known:
        `session.topLogprobs` of Paddock asks for alternatives."""
        return self._optional("entropies")

    @property
    def message_spans(self) -> Sequence[Mapping[str, Any]] | None:
        """Whose the tokens are, without gaps: `{start, end, role, part, tool, tool_call_id, status}`; `part` is `content`, `scaffold`,
        `answer` or `unknown`. None where they were not asked for."""
        found: Sequence[Mapping[str, Any]] | None = self.raw.get("message_spans")
        return found

    @property
    def observation_mask(self) -> memoryview | None:
        """1 at what tools said behind the first answer, without the template's scaffold and without what failed: for a loss on what a
        policy should foresee (ECHO). None where spans were not asked for."""
        found = self._arrays.get("observation_mask")
        return None if found is None else found.view()

    @property
    def ref_logprobs(self) -> memoryview[float] | None:
        """Of all ids but the first (NaN), by the reference model's engine; None where they were not asked for or could not be had:
        `Group.scores` says why."""
        return self._optional("ref_logprobs")

    @property
    def teacher_logprobs(self) -> memoryview[float] | None:
        """The same by the teacher's engine."""
        return self._optional("teacher_logprobs")

    def _optional(self, name: str) -> memoryview[float] | None:
        found = self._arrays.get(name)
        return None if found is None else found.view()

    @property
    def trained_tokens(self) -> int:
        """How many tokens of this row train."""
        return sum(self.loss_mask)

    @property
    def oldest_version(self) -> int | None:
        """The lowest ordinal that sampled one of its trainable tokens: what its age is counted from. Null: it trains nothing."""
        mask = self.loss_mask
        lows = [low for start, end, low, _ in self.versions if low >= 0 and any(mask[start:end])]
        return min(lows, default=None)


@dataclass(frozen=True)
class Node:
    """A run of answers that the same rollouts came through."""

    parent: int | None
    """Index of the node before it; None: it begins a family."""
    depth: int
    rollouts: Sequence[str]
    count: int
    """How many of them have a number."""
    value: float | None
    """The mean of their numbers."""


@dataclass(frozen=True)
class Group:
    """One settled round of a group: its members with their verdicts, and its rows."""

    run_id: str
    group_id: str
    round: int
    row_mode: str
    claim_id: str | None
    policy: Any
    """`name` (`default` where the run has one policy) and `version`, its weights that were live when the round was claimed."""
    task: Mapping[str, Any]
    labels: Mapping[str, str]
    members: Sequence[Member]
    rows: Sequence[Row]
    nodes: Sequence[Node] | None
    """Places of the families that the members belong to, parents first; None but in row mode `tree`."""
    raw: Mapping[str, Any] = field(repr=False)
    again: bool = False
    """Handed out before: to a trainer that was killed, or to one whose lease ran out."""
    settled: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The settled round as the events tell it; empty where rows were read without a claim."""

    @property
    def scores(self) -> Mapping[str, Mapping[str, Any]]:
        """By role (`reference`, `teacher`) that the run asked for: `model`, `version`, `kind`, and `missing`, which says why rows lack
        its logprobs."""
        found: Mapping[str, Mapping[str, Any]] = self.raw.get("scores") or {}
        return found

    @property
    def policy_name(self) -> str:
        """Whose rows and rewards these are; `default` where the run has one policy."""
        return str((self.policy or {}).get("name", "default"))

    @property
    def outcome_stopped(self) -> bool:
        """Whether the round was stopped on rewards, which selects what it holds."""
        return bool(self.settled.get("outcome_stopped") or self.raw.get("outcome_stopped"))

    def member(self, rollout_id: str) -> Member:
        for member in self.members:
            if member.rollout_id == rollout_id:
                return member
        raise KeyError(f"round {self.round} of group {self.group_id} has no rollout {rollout_id}")

    def rows_of(self, rollout_id: str) -> Sequence[Row]:
        """The rows of one rollout, in order; its last one has `is_last`."""
        return [row for row in self.rows if row.rollout_id == rollout_id]

    def trainable(self) -> Iterator[Row]:
        """The rows that may train: usable, with a reward, and with a token to train."""
        for row in self.rows:
            if row.usable and row.reward is not None and any(row.loss_mask):
                yield row


class _Slice:
    """One array of a row, made when it is first looked at."""

    def __init__(self, source: memoryview | Sequence[Any], dtype: str) -> None:
        self._source = source
        self._dtype = dtype
        self._view: Any = None

    def view(self) -> Any:
        if self._view is None:
            self._view = self._make()
        return self._view

    def _make(self) -> Any:
        code, size = _DTYPES[self._dtype]
        if not isinstance(self._source, memoryview):
            numbers = [math.nan if value is None else value for value in self._source]
            return memoryview(array(code, numbers)).toreadonly()
        if sys.byteorder == "little" or size == 1:
            whole: Any = self._source
            return whole.cast(code)
        swapped = array(code, self._source.tobytes())
        swapped.byteswap()
        return memoryview(swapped).toreadonly()


def decode(body: bytes, content_type: str = MEDIA_TYPE) -> Group:
    """Reads the answer of `GET /groups/{g}/rounds/{k}/rows`.

    Raises `Malformed` where lengths, offsets or types are not what the format says: nothing is guessed.
    """
    if body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    if content_type.split(";")[0].strip() == "application/json":
        return _group(_json(body), None)
    if body[: len(MAGIC)] != MAGIC:
        raise Malformed("this is no body of rows: it does not begin with PDKROWS1")
    if len(body) < 12:
        raise Malformed("the body of rows ends within its head")
    (length,) = struct.unpack_from("<I", body, 8)
    if len(body) < 12 + length:
        raise Malformed("the body of rows ends within its header")
    return _group(_json(body[12 : 12 + length]), memoryview(body)[_up(12 + length) :])


def _up(length: int) -> int:
    return (length + 7) // 8 * 8


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        header = json.loads(body)
    except ValueError as error:
        raise Malformed(f"the header of the rows is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise Malformed("the header of the rows is no JSON object")
    return header


def _group(header: Mapping[str, Any], area: memoryview | None) -> Group:
    try:
        return Group(
            run_id=header["run_id"],
            group_id=header["group_id"],
            round=header["round"],
            row_mode=header["row_mode"],
            claim_id=header["claim_id"],
            policy=header.get("policy"),
            task=header.get("task") or {},
            labels=header.get("labels") or {},
            members=[_member(member) for member in header["members"]],
            rows=[_row(row, area) for row in header["rows"]],
            nodes=_nodes(header.get("nodes")),
            raw=header,
        )
    except (KeyError, TypeError) as error:
        raise Malformed(f"the header of the rows lacks something, or holds it in another shape: {error!r}") from error


def _nodes(given: Any) -> list[Node] | None:
    if given is None:
        return None
    nodes = [Node(raw["parent"], raw["depth"], raw["rollouts"], raw["count"], _number(raw["value"])) for raw in given]
    for index, node in enumerate(nodes):
        if node.parent is not None and not 0 <= node.parent < index:
            raise Malformed(f"node {index} has node {node.parent} before it: parents stand before children")
    return nodes


def _member(raw: Mapping[str, Any]) -> Member:
    return Member(
        rollout_id=raw["rollout_id"],
        slot=raw["slot"],
        attempt=raw["attempt"],
        out=raw["out"],
        end=raw["end"],
        cut=raw["cut"],
        reward=_number(raw["reward"]),
        status=raw.get("status"),
        sampled_tokens=raw["sampled_tokens"],
        harness=raw.get("harness"),
        labels=raw.get("labels") or {},
        findings=raw.get("findings") or [],
        forked_from=raw.get("forked_from"),
        raw=raw,
    )


def _row(raw: Mapping[str, Any], area: memoryview | None) -> Row:
    n_tokens = raw["n_tokens"]
    prompt_len = raw["prompt_len"]
    if not 0 <= prompt_len <= n_tokens:
        raise Malformed(f"row {raw['row_id']}: a prompt of {prompt_len} tokens in a row of {n_tokens}")
    return Row(
        row_id=raw["row_id"],
        rollout_id=raw["rollout_id"],
        session_id=raw["session_id"],
        role=raw.get("role"),
        node_ids=raw["node_ids"],
        is_last=raw["is_last"],
        fork_reason=raw["fork_reason"],
        end=raw["end"],
        cut=raw["cut"],
        usable=raw["usable"],
        unusable_reason=raw["unusable_reason"],
        reward=_number(raw["reward"]),
        weight=raw["weight"],
        rows_of_rollout=raw["rows_of_rollout"],
        trained_tokens_of=raw["trained_tokens_of"],
        prompt_len=prompt_len,
        n_tokens=n_tokens,
        versions=[(start, end, low, high) for start, end, low, high in raw["versions"]],
        temperatures=[(start, end, value) for start, end, value in raw["temperatures"]],
        turn_spans=[(start, end) for start, end in raw["turn_spans"]],
        observation_spans=[(start, end) for start, end in raw["observation_spans"]],
        turn_nodes=raw.get("turn_nodes"),
        mask_reasons=[(start, end, reason) for start, end, reason in raw["mask_reasons"]],
        logprob_kind=raw["logprob_kind"],
        media=raw.get("media") or [],
        raw=raw,
        _arrays={
            **{name: _slice(raw, name, area, dtype) for name, dtype in _ARRAYS.items()},
            **{name: _slice(raw, name, area, dtype) for name, dtype in _OPTIONAL.items() if raw["arrays"].get(name) is not None},
        },
    )


def _slice(row: Mapping[str, Any], name: str, area: memoryview | None, dtype: str) -> _Slice:
    place = row["arrays"][name]
    where = f"row {row['row_id']}, {name}"
    if area is None:
        if not isinstance(place, list):
            raise Malformed(f"{where}: JSON rows hold their arrays as lists")
        if len(place) != row["n_tokens"]:
            raise Malformed(f"{where}: {len(place)} entries for {row['n_tokens']} tokens")
        return _Slice(place, dtype)
    if place["dtype"] != dtype:
        raise Malformed(f"{where}: is {place['dtype']}, and {dtype} is the format")
    if place["length"] != row["n_tokens"]:
        raise Malformed(f"{where}: {place['length']} entries for {row['n_tokens']} tokens")
    start = place["offset"]
    end = start + place["length"] * _DTYPES[dtype][1]
    if start < 0 or start % 8 != 0 or end > len(area):
        raise Malformed(f"{where}: bytes {start} to {end} of {len(area)} are no aligned part of the body")
    return _Slice(area[start:end], dtype)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Malformed(f"a reward is a finite number or null, and not {value!r}")
    return float(value)
