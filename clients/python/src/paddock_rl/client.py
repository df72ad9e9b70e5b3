"""`Paddock` and `Run`: the trainer's side of `/rl/v1`, synchronous. `paddock_rl.aio` is the same for asyncio."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import os
import ssl
import tarfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote, urlencode

from .advantages import Advantages
from .errors import ClaimLost, FeedStopped, Full, GroupsFailed, Malformed, Rejected, Unanswered
from .http import Request, Transport
from .leases import Leases
from .rows import MEDIA_TYPE, Group, Row, decode

Purpose = Literal["train", "collect"]
RowMode = Literal["turns", "chains", "tree"]
Phase = Literal["pausing", "live", "failed"]
UpdateMode = Literal["drain", "keep", "abort-resubmit"]
MemoryKey = Literal["run", "harness", "variant", "version"]
Bounds = tuple[float | None, float | None]
Outcome = Literal["used", "stale", "filtered", "no_signal", "truncated", "skipped"]

# How many of the newest groups are looked at for why they failed.
_LOOKED_AT = 10
_API = "/rl/v1"
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Attached:
    """An incarnation of a trainer: older ones are fenced from here on."""

    incarnation: int
    resume_step: int | None
    undone: Mapping[str, int]
    """How many dispositions and rows of lost steps were undone."""
    again: Sequence[str]
    """Groups that will be handed out once more."""
    cursor: str | None


@dataclass(frozen=True)
class Submitted:
    accepted: Sequence[Mapping[str, Any]]
    capacity: Mapping[str, Any] | None


@dataclass(frozen=True)
class Disposed:
    accepted: int
    repeated: int
    claims_done: Sequence[str]


@dataclass(frozen=True)
class Turn:
    """How far a rollout has come with an answered call, of a run with `turn_events=True`."""

    group_id: str
    rollout_id: str
    session_id: str
    call_id: str
    call_class: str
    turn: int
    sampled_tokens: int
    context_tokens: int | None
    entropy: float | None
    rewards: Mapping[str, float] | None
    """Parts of the reward that the environment has told so far. None: it has told none, which is not 0."""


@dataclass(frozen=True)
class Event:
    """Something that happened in the run. Events inform; claims give."""

    cursor: str
    type: str
    data: Mapping[str, Any]

    def turn(self) -> Turn | None:
        """What it says, where it is a `turn`."""
        if self.type != "turn":
            return None
        return Turn(**{one.name: self.data.get(one.name) for one in fields(Turn)})


class Paddock:
    """A Paddock's control listener. `token` is what the file `control-token` of its data directory holds; where it is left out,
    `PADDOCK_CONTROL_TOKEN` is taken."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        given = os.environ.get("PADDOCK_CONTROL_TOKEN") if token is None else token
        if not given:
            raise ValueError("there is no control token. Fix: give `token`, or set PADDOCK_CONTROL_TOKEN.")
        self._transport = Transport(url, given, timeout_s=timeout_s, patience_s=patience_s, tls=tls)

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        wait_s: float = 0.0,
    ) -> dict[str, Any]:
        """Any route that answers JSON, `/rl/v1` included in `path`: for what has no method here."""
        request = Request(method, path, body, repeatable or method == "GET", wait_s=wait_s)
        answer = self._transport.send(request)
        return answer.json() if answer.body else {}

    def run(self, run_id: str | None = None, **asked: Any) -> Run:
        """Opens a run (`POST /rl/v1/runs`), or goes on with it if there is one of this id that was asked for alike. `asked` holds the
        route's keys: `purpose, model, row_mode, staleness, sampling, harness, environment, tasks, max_null_share, ...`.
        """
        name = run_id or f"run-{uuid.uuid4()}"
        opened = self.ask("POST", f"{_API}/runs", {"run_id": name, **asked}, repeatable=True)
        return Run(self, str(opened["run_id"]), opened)

    def open_run(self, run_id: str) -> Run:
        """A run that there is already."""
        return Run(self, run_id, self.ask("GET", f"{_API}/runs/{_part(run_id)}"))

    def rows(self, group_id: str, round: int = 0, *, policy: str | None = None, spans: bool = False) -> Group:
        """The rows of a settled round, to read: nothing is owned or masked by it, so do not train on them. `policy`: whose, where the run
        trains several. `spans`: with whose each token is, `Row.message_spans`.
        """
        return self._rows(group_id, round, None, spans, policy)

    def tasks(
        self,
        *,
        run: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
        tasks: Iterable[str] | None = None,
        versions: Bounds | None = None,
        pass_rate: Bounds | None = None,
        attempts: Bounds | None = None,
        uses: Bounds | None = None,
        unused_since: str | None = None,
        by: Iterable[MemoryKey] = (),
        sort: Literal["pass_rate", "attempts", "uses", "last"] = "pass_rate",
        descending: bool = False,
        page: int = 500,
    ) -> list[dict[str, Any]]:
        """What is remembered of tasks, a line each, or each with every key of `by`: `digest, name, attempts, numbers, passed, pass_rate,
        mean_reward, nulls, infra, stopped, mean_tokens, mean_turns, uses, ...`. Bounds are `(least, most)`, None for none; `tasks` are
        digests; `unused_since` is a time such as `2026-03-01T12:00:00Z`: tasks of which a row was used then or later are left out. They
        are asked for a `page` at a time.
        """
        digests = None if tasks is None else ",".join(tasks)
        if digests == "":
            return []
        asked: dict[str, Any] = {"run": run, "harness": harness, "variant": variant, "task": digests, "by": ",".join(by) or None}
        bounds = {"versions": versions, "pass_rate": pass_rate, "attempts": attempts, "uses": uses}
        asked |= {name: _between(given) for name, given in bounds.items()}
        asked |= {"unused_since": unused_since, "sort": sort, "order": "desc" if descending else "asc", "limit": page}
        query = {name: value for name, value in asked.items() if value is not None}
        lines: list[dict[str, Any]] = []
        while True:
            found = self.ask("GET", f"{_API}/tasks?{urlencode(query)}")
            lines += found["tasks"]
            if found["next"] is None:
                return lines
            query["after"] = found["next"]

    def open_round(self, group_id: str, **asked: Any) -> dict[str, Any]:
        """A further round of a group whose last one has settled. A lost answer is not asked for again: look at the group first."""
        return self.ask("POST", f"{_API}/groups/{_part(group_id)}/rounds", asked)

    def cancel_group(self, group_id: str) -> dict[str, Any]:
        """Stops what goes on of a group; it settles with what there is."""
        return self.ask("POST", f"{_API}/groups/{_part(group_id)}/cancel", {}, repeatable=True)

    def cancel_rollout(self, rollout_id: str, *, reason: str | None = None) -> dict[str, Any]:
        """Nobody wants more of a rollout; `reason` becomes its `end_detail`."""
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/cancel", _reason(reason), repeatable=True)

    def shelve(self, rollout_id: str, reason: str | None = None) -> dict[str, Any]:
        """Puts the agent of a rollout that Paddock does aside: its calls, its box and its clock stand still, its place is another's."""
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/shelve", _reason(reason), repeatable=True, wait_s=60.0)

    def resume(self, rollout_id: str) -> dict[str, Any]:
        """Lets a shelved agent go on, as soon as there is a place for it."""
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/resume", {}, repeatable=True)

    def score(self, sequences: Iterable[Sequence[int]], *, if_version: str | None = None, role: str = "policy") -> dict[str, Any]:
        """Logprobs of given ids under the weights that the engine of a role (`policy`, `reference`, `teacher`) has now, at temperature 1:
        `kind`, `version` and `sequences`, each with `logprobs` of shape [T], None for the first id. With `if_version`, other weights are
        refused (`SCORE_REFUSED`).
        """
        body: dict[str, Any] = {"sequences": [{"ids": [int(one) for one in ids]} for ids in sequences]}
        body |= {} if role == "policy" else {"role": role}
        if if_version is not None:
            body["if_version"] = if_version
        return self.ask("POST", f"{_API}/score", body, repeatable=True)

    def tree(self, rollout_id: str) -> dict[str, Any]:
        """The family of a rollout: `rollouts`, parents first, and `nodes`, the places that they came through; `value` is the mean reward
        of those that did.
        """
        return self.ask("GET", f"{_API}/rollouts/{_part(rollout_id)}/tree")

    def open_rollout(self, group_id: str, *, idempotency_key: str | None = None, **asked: Any) -> dict[str, Any]:
        """A rollout of an outside group, for a harness of your own: answers its id, the session's key and base URL."""
        key = idempotency_key or str(uuid.uuid4())
        body = {"group_id": group_id, "idempotency_key": key, **asked}
        return self.ask("POST", f"{_API}/rollouts", body, repeatable=True)

    def rollout(self, rollout_id: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        """A rollout as it stands; with `wait_s`, once it has ended or the time is over."""
        return self.ask("GET", f"{_API}/rollouts/{_part(rollout_id)}?{urlencode({'wait_s': wait_s})}", wait_s=wait_s)

    def end_rollout(self, rollout_id: str, end: str = "completed", **more: Any) -> dict[str, Any]:
        """Ends an outside rollout, with a `verdict` if there is one already."""
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/end", {"end": end, **more}, repeatable=True)

    def verdict(self, rollout_id: str, source: str, reward: float | None, **more: Any) -> dict[str, Any]:
        """A reward for a rollout, perhaps a late one. Null is no reward; it is not 0."""
        body = {"source": source, "reward": reward, **more}
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/verdict", body)

    def verify(
        self,
        key: str,
        task: str,
        *,
        run_id: str | None = None,
        files: Mapping[str, bytes | str] | None = None,
        archive: bytes | None = None,
        answer: str | None = None,
        wait_s: float = 3600.0,
    ) -> dict[str, Any]:
        """A verdict on work that was done elsewhere: `files` by their paths in a box (or an `archive`, a tar of them), an `answer`, or
        both. `task` is a digest, or with `run_id` a name. The same `key` and work give the same verdict, whenever it is asked for. A fault
        of Paddock's is `Rejected` with `VERIFY_FAILED`, and nothing is scored. After `wait_s` the answer may still be `pending`:
        `verification` waits on.
        """
        packed = archive if files is None else _tar(files)
        if files is not None and archive is not None:
            raise ValueError("files and archive are the same thing. Fix: give one of them.")
        body: dict[str, Any] = {"idempotency_key": key, "task": task, "run_id": run_id, "answer": answer}
        body["archive"] = None if packed is None else base64.b64encode(packed).decode()
        first = min(wait_s, _LONGEST_WAIT_S)
        found = self.ask("POST", f"{_API}/verify?{urlencode({'wait_s': first})}", body, repeatable=True, wait_s=first)
        if found["state"] == "done":
            return found
        return self.verification(key, wait_s=max(0.0, wait_s - first))

    def verification(self, key: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        """How a verification stands; with `wait_s`, once it has ended or the time is over."""
        ends = time.monotonic() + wait_s
        while True:
            left = max(0.0, min(ends - time.monotonic(), _LONGEST_WAIT_S))
            found = self.ask("GET", f"{_API}/verify/{_part(key)}?{urlencode({'wait_s': left})}", wait_s=left)
            if found["state"] == "done" or time.monotonic() >= ends:
                return found

    def rewrite(
        self, rollout_id: str, rewrites: Sequence[Mapping[str, Any]], *, name: str = "rewrite", wait_s: float = 3600.0
    ) -> dict[str, Any]:
        """New rollouts of a recorded one with other messages in the place of some: each of `rewrites` has `by` and `edits`
        `[{from, to, messages}]`, perhaps `answer`, which the task's own verifier scores. All or none come in; the same again are the same
        `run_id`. None of it is trained by formats for RL.
        """
        body = {"name": name, "rewrites": list(rewrites)}
        return self.ask("POST", f"{_API}/rollouts/{_part(rollout_id)}/rewrites", body, repeatable=True, wait_s=wait_s)

    def _rows(self, group_id: str, round: int, claim_id: str | None, spans: bool, policy: str | None = None) -> Group:
        given = {"claim_id": claim_id, "policy": policy, "spans": "true" if spans else None}
        asked = {name: value for name, value in given.items() if value is not None}
        path = f"{_API}/groups/{_part(group_id)}/rounds/{round}/rows{'?' + urlencode(asked) if asked else ''}"
        answer = self._transport.send(Request("GET", path, repeatable=True, accept=MEDIA_TYPE))
        return decode(answer.body, answer.headers.get("content-type", MEDIA_TYPE))


class Run:
    """A run as its trainer sees it. `attach` first; what is claimed is renewed in the background until it is disposed of, given back
    or the process ends. Use it as a context manager, or call `close`, so that claims still held go back at once."""

    def __init__(self, paddock: Paddock, run_id: str, opened: Mapping[str, Any]) -> None:
        self.paddock = paddock
        self.run_id = run_id
        self.opened = opened
        """What opening it said: `capture`, `strategy`, `version_source`, `notes`."""
        self._incarnation: int | None = None
        self._path = f"{_API}/runs/{_part(run_id)}"
        self._leases = Leases(self._renew)
        self._claims: dict[str, str] = {}
        """By row id, the claim with which each row came last."""
        self._asked: dict[str, None] = {}
        """Groups that this process asked for and has not had, the oldest first."""
        self._failed = 0
        """How many failed groups this process knows of."""

    @property
    def attached(self) -> bool:
        """Whether this process speaks for the run."""
        return self._incarnation is not None

    @property
    def incarnation(self) -> int:
        if self._incarnation is None:
            raise RuntimeError("this process has not attached to the run. Fix: call attach(resume_step) first.")
        return self._incarnation

    def attach(self, resume_step: int | None = None, *, consumer: str | None = None) -> Attached:
        """Speaks for the run from here on; older incarnations get `Fenced`. `resume_step` is the step of the checkpoint that was
        loaded: what was trained behind it is undone and handed out again. None: there is no checkpoint.
        """
        body: dict[str, Any] = {"resume_step": resume_step}
        if consumer is not None:
            body["consumer"] = consumer
        found = self._ask("POST", "/attach", body)
        self._incarnation = int(found["incarnation"])
        return Attached(self._incarnation, found.get("resume_step"), found["undone"], found["again"], found.get("cursor"))

    def join(self, incarnation: int) -> None:
        """Speaks for an incarnation that another process of the same trainer has opened, as ranks beside the first one do."""
        self._incarnation = incarnation

    def checkpoint(self, step: int) -> None:
        """The weights of this step are safe. A trainer that attaches with `resume_step` keeps what was disposed of up to that step."""
        self._own("/checkpoint", {"step": step}, repeatable=True)

    def state(self) -> dict[str, Any]:
        return self._ask("GET", "")

    def submit(self, groups: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, wait_s: float = 0.0) -> Submitted:
        """Asks for groups: `{task, n, group_id?, over?, stop_when?, carry?, inject?, ...}` each; one without `group_id` gets one.

        Raises `Full` where there is no room for all. With `wait_s`, those that were refused are asked for again, as often as Paddock
        says; do not wait where nobody else claims meanwhile.
        """
        given = [groups] if isinstance(groups, Mapping) else list(groups)
        open_ = [{"group_id": f"group-{uuid.uuid4()}", **group} for group in given]
        accepted: list[Mapping[str, Any]] = []
        ends = time.monotonic() + wait_s
        while True:
            try:
                found = self._ask("POST", "/groups", {"groups": open_}, repeatable=True)
                self._asked |= dict.fromkeys(str(group["group_id"]) for group in open_)
                return Submitted([*accepted, *found["accepted"]], found.get("capacity"))
            except Full as full:
                accepted += full.accepted
                refused = set(full.refused)
                open_ = [group for group in open_ if group["group_id"] in refused]
                if not open_ or time.monotonic() + full.retry_after_s > ends:
                    raise
                time.sleep(full.retry_after_s)

    def fork(self, rollout_id: str, call: str | int, n: int, *, group_id: str | None = None, **asked: Any) -> str:
        """Asks for a group of `n` rollouts that go on from one of this run, at a call of its agent: its id, or its number among the calls of
        the conversation, from 1. What was answered before it is replayed and not trained again. `asked` holds the route's other keys:
        `way` (`replay`, or `state` and `graft` in a copy of its box), `on_divergence` (`refuse` or `branch`) and those of a group. Answers the group's id; it settles like any.
        """
        body = {"group_id": group_id or f"fork-{uuid.uuid4()}", "call": call, "n": n, **asked}
        path = f"{_API}/rollouts/{_part(rollout_id)}/forks"
        return str(self.paddock.ask("POST", path, body, repeatable=True)["group_id"])

    def claim(
        self,
        max_groups: int = 1,
        *,
        policy: str | None = None,
        wait_s: float = 30.0,
        lease_s: float = 300.0,
        consumer: str = "trainer",
        spans: bool = False,
    ) -> list[Group]:
        """Settled groups that nobody else has, oldest first, with their rows; none where none settled within `wait_s`. Whoever claims
        owes a disposition for each row, or gives back. Of a run that trains several policies each group comes once for each of them, or
        for `policy` alone. `spans`: with whose each token is, `Row.message_spans`.
        """
        body: dict[str, Any] = {"consumer": consumer, "max_groups": max_groups, "wait_s": wait_s, "lease_s": lease_s}
        body |= {} if policy is None else {"policy": policy}
        found = self._own("/claims", body, wait_s=wait_s)
        claims = {str(claim["claim_id"]): claim for claim in found["claims"]}
        for claim_id in claims:
            self._leases.hold(claim_id, lease_s)
        try:
            return [self._load(claim, spans) for claim in claims.values()]
        except BaseException:
            # Nobody is told of these groups, so nobody could dispose of them: their leases run out.
            for claim_id in claims:
                self._leases.let_go(claim_id)
            raise

    def _forget(self, groups: Iterable[Group]) -> None:
        """Renews these no longer: they come back when their leases are over."""
        for group in groups:
            if group.claim_id is not None:
                self._leases.let_go(group.claim_id)

    def groups(
        self,
        limit: int | None = None,
        *,
        policy: str | None = None,
        max_groups: int = 1,
        lease_s: float = 300.0,
        consumer: str = "trainer",
        spans: bool = False,
    ) -> Iterator[Group]:
        """Claims settled groups (of one of several policies) as they come, `limit` of them, or until the run is closed and has none left. Raises `FeedStopped`
        where the run's feed has stopped and none is under way, `GroupsFailed` where groups failed and none is under way, and `Rejected`
        (`RUN_NULL_SHARE`) where the run has stopped at its `max_null_share` and no settled group is left.

        An answer that got lost is claimed anew: what it held comes back when its lease is over.
        """
        taken = 0
        while limit is None or taken < limit:
            most = max_groups if limit is None else min(max_groups, limit - taken)
            found = self._claim_more(most, lease_s, consumer, spans, policy)
            if found is None:
                return
            taken += len(found)
            yield from found

    def _claim_more(
        self, max_groups: int, lease_s: float, consumer: str, spans: bool, policy: str | None = None
    ) -> list[Group] | None:
        """One turn of `groups`: None where nothing will come any more."""
        try:
            found = self.claim(
                max_groups, policy=policy, lease_s=lease_s, consumer=consumer, wait_s=_LONGEST_WAIT_S / 2, spans=spans
            )
        except Unanswered:
            return []
        return found if found or not self._drained(policy) else None

    def give_back(self, group: Group) -> None:
        """Somebody else may have it: its rows are owned by nobody again."""
        if group.claim_id is None:
            raise ValueError("rows that were read without a claim belong to nobody")
        self._leases.let_go(group.claim_id)
        self._unclaim(group.claim_id)

    def dispose(self, dispositions: Iterable[Mapping[str, Any]]) -> Disposed:
        """Says what was done with rows: `{row, step, outcome, claim_id?, use?, tokens?, advantage?, reward_used?, reason?}` each. `claim_id` (`Group.claim_id`)
        may be left out in the process that claimed the row. May be repeated. Raises `Rejected` (`CLAIM_OVER`) if another consumer has the group by now.
        """
        whole = [
            {"claim_id": self._claim_of(each), "use": 0, "tokens": None, "advantage": None, "reward_used": None, "reason": None, **each} for each in dispositions
        ]
        for each in whole:
            _finite(each, f"the disposition of row {each['row']}")
        found = self._own("/dispositions", {"dispositions": whole}, repeatable=True)
        for claim in found["claims_done"]:
            self._leases.let_go(str(claim))
        return Disposed(_count(found["accepted"]), _count(found["repeated"]), found["claims_done"])

    def dispose_group(
        self,
        group: Group,
        step: int,
        outcome: Outcome | None = None,
        *,
        computed: Advantages | None = None,
        left_out: Mapping[str, Outcome] | None = None,
        reason: str | None = None,
    ) -> Disposed:
        """Says it of all rows of a group. Without `outcome`: what `left_out` says of a row; else `used` where `computed` has an advantage
        for it, `no_signal` where the round has none to give, `filtered` for rows that the run's selector left out, with its reason, and
        `skipped` for others that may not train.
        """
        if outcome is None and computed is None:
            raise ValueError("what became of the rows? Fix: give outcome, or computed.")
        by_row = {} if computed is None else {row.row_id: row for row in computed.rows}
        said = []
        for row in group.rows:
            found = by_row.get(row.row_id)
            own = outcome or (left_out or {}).get(row.row_id)
            if own is None:
                own = _left(row) if found is None else "no_signal" if found.no_signal else "used"
            worth = {} if found is None else {"advantage": found.advantage, "reward_used": found.reward_used}
            why = group.member(row.rollout_id).filtered if own == "filtered" else None
            said.append({"row": row.row_id, "claim_id": group.claim_id, "step": step, "outcome": own, "reason": reason or why or row.unusable_reason, **worth})
        return self.dispose(said)

    def policy(
        self,
        version: int,
        phase: Phase,
        *,
        step: int | None | Literal["unsaid"] = "unsaid",
        policy: str | None = None,
        mode: UpdateMode = "drain",
        label: str | None = None,
        requests: Sequence[Mapping[str, Any]] = (),
        adapter: Mapping[str, str] | None = None,
        wait_s: float = 600.0,
    ) -> dict[str, Any]:
        """Tells Paddock of weights: `pausing` answers when new calls wait and open ones are dealt with as `mode` says; move the weights
        then, and say `live`, or `failed`. `step`, with `live`: the step whose update made these weights, None for those that the run
        starts with. An `attach` that resumes from an earlier step removes them. `requests` (`{path, body}`) are posted to each replica before weights are `live`: what makes
        it load them. `policy`: whose they are, where the run trains several. `adapter` (`{name, path?}`, with `live`): the weights are a LoRA adapter, which each replica loads where there is a path, and
        nothing is paused. Raises `Gated` where groups under way would become too old, `Evaluating` where evaluations are not done within
        `wait_s`.
        """
        if phase == "live" and step == "unsaid":
            raise ValueError("which step made these weights? Fix: give step, or step=None for the weights that the run starts with.")
        body: dict[str, Any] = {"version": version, "phase": phase, "timeout_s": wait_s}
        body |= {"step": step} if phase == "live" else {}
        body |= {} if policy is None else {"policy": policy}
        body |= {"mode": mode} if adapter is None or mode != "drain" else {}
        body |= {} if adapter is None else {"adapter": dict(adapter)}
        body |= {"requests": [dict(each) for each in requests]} if requests else {}
        body |= {} if label is None else {"label": label}
        return self._own("/policy", body, repeatable=True, wait_s=wait_s)

    def engines(self, engines: Iterable[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The replicas of the engine from now on: URLs, or `{url, key_ref?, role?}` each, `key_ref` naming a key of
        `engine.keys` in Paddock's configuration. New ones take calls, those that are left out end what they have. All or nothing; may be repeated.
        """
        named = [{"url": each} if isinstance(each, str) else dict(each) for each in engines]
        body = {"incarnation": self.incarnation, "engines": named}
        found: list[dict[str, Any]] = self._ask("PUT", "/engines", body, repeatable=True)["engines"]
        return found

    def shelve(self, reason: str | None = None) -> dict[str, Any]:
        """Puts all agents of the run aside that are at work: `rollouts` with their `state`, `refused` with the reason."""
        return self._ask("POST", "/shelve", _reason(reason), repeatable=True, wait_s=60.0)

    def resume(self) -> dict[str, Any]:
        """Lets all shelved agents of the run go on, as places become free."""
        return self._ask("POST", "/resume", {}, repeatable=True)

    def probe(
        self,
        call_id: str,
        k: int,
        max_tokens: int,
        *,
        temperature: float = 1.0,
        answer: Mapping[str, Any] | None = None,
        suffix: str | Sequence[int] | None = None,
        verifier: Mapping[str, Any] | None = None,
        wait_s: float = 600.0,
    ) -> dict[str, Any]:
        """What the policy would say next: `k` continuations of the exact ids of a recorded call's prompt, with `answer` (`{}`, or
        `{"offset": n}`) also of its answer, then of `suffix`. No harness sees them, and nothing trains them. `continuations` have `text`,
        `ids`, `logprobs`, and with a `verifier` (`{"rule": "exact" | "contains" | "regex" | "number", ...}`) a `value`.
        """
        given = suffix if suffix is None or isinstance(suffix, str) else [int(one) for one in suffix]
        body: dict[str, Any] = {"k": k, "max_tokens": max_tokens, "temperature": temperature}
        more = {"answer": answer, "suffix": given, "verifier": verifier}
        body |= {name: value for name, value in more.items() if value is not None}
        return self.paddock.ask("POST", f"{_API}/calls/{_part(call_id)}/probes", body, wait_s=wait_s)

    def metrics(self, step: int, values: Mapping[str, float], *, mismatch: Mapping[str, float] | None = None) -> None:
        """The trainer's own numbers of a step, shown beside the rollouts'. Raises `ValueError` with the name of a number that is not finite."""
        body: dict[str, Any] = {"step": step, "values": _finite(values, f"metrics of step {step}")}
        if mismatch is not None:
            body["mismatch"] = _finite(mismatch, f"the mismatch of step {step}")
        self._own("/metrics", body, repeatable=True)

    def recorded_metrics(self, after_step: int | None = None) -> dict[str, Any]:
        """The numbers that a trainer has sent, of later steps than `after_step`."""
        return self._ask("GET", "/metrics" if after_step is None else f"/metrics?{urlencode({'after_step': after_step})}")

    def events(self, after: str | None = None) -> Iterator[Event]:
        """What happens, from a cursor on, without heartbeats; never ends. At least once: keep the cursor of what you have dealt with.
        Raises `CursorGone` where that is too long ago.
        """
        while True:
            found, after = self.poll_events(after)
            yield from found

    def poll_events(self, after: str | None = None, *, wait_s: float = 30.0) -> tuple[list[Event], str | None]:
        """One look: what happened behind the cursor, and the cursor to go on with."""
        query = {"wait_s": wait_s} if after is None else {"after": after, "wait_s": wait_s}
        path = f"{self._path}/events?{urlencode(query)}"
        request = Request("GET", path, repeatable=True, accept="application/x-ndjson", wait_s=wait_s)
        events = [_event(line) for line in self.paddock._transport.send(request).body.splitlines() if line.strip()]
        cursor = events[-1].cursor if events else after
        return [event for event in events if event.type != "heartbeat"], cursor

    def eval(
        self,
        tasks: Sequence[Any] | None = None,
        *,
        split: str | None = None,
        k: int = 1,
        eval_id: str | None = None,
        **asked: Any,
    ) -> dict[str, Any]:
        """Begins an evaluation, which is never trained: `k` rollouts of each task, with the weights that are live. Without `tasks` it is of
        all that the run has of `split`. `asked` holds the route's other keys: `sampling, version, versions, pass_reward, deadline_s`.
        """
        body = {"eval_id": eval_id or f"eval-{uuid.uuid4()}", "split": split, "k": k, **asked}
        body |= {} if tasks is None else {"tasks": list(tasks)}
        return self._ask("POST", "/evals", body, repeatable=True)

    def eval_state(self, eval_id: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        """An evaluation as it stands; with `wait_s`, once it has ended or the time is over. `result` is None while it runs."""
        return self._ask("GET", f"/evals/{_part(eval_id)}?{urlencode({'wait_s': wait_s})}", wait_s=wait_s)

    def eval_result(self, eval_id: str) -> dict[str, Any]:
        """Waits until an evaluation has ended. `result` has mean, interval, pass and nulls; `state` is `cancelled` where it was stopped."""
        while True:
            found = self.eval_state(eval_id, wait_s=_LONGEST_WAIT_S)
            if found["state"] != "running":
                return found

    def cancel_eval(self, eval_id: str) -> dict[str, Any]:
        """Stops what goes on of an evaluation; its result is of what there is."""
        return self._ask("POST", f"/evals/{_part(eval_id)}/cancel", {}, repeatable=True)

    def finish(self) -> None:
        """No more groups will be asked for; what runs goes on to its end."""
        self._ask("POST", "/close", {}, repeatable=True)

    def close(self) -> None:
        """Stops renewing and gives back what is still claimed. The run goes on."""
        for claim_id in self._leases.close():
            try:
                self._unclaim(claim_id)
            except Rejected:
                # Disposed of, fenced or over: not ours to give back any more.
                continue

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _load(self, claim: Mapping[str, Any], spans: bool) -> Group:
        claim_id = str(claim["claim_id"])
        try:
            group = self.paddock._rows(str(claim["group_id"]), int(claim["round"]), claim_id, spans)
        except Rejected as error:
            if self._leases.lost(claim_id):
                raise ClaimLost(f"the lease of claim {claim_id} ran out before its rows came") from error
            raise
        self._asked.pop(group.group_id, None)
        self._claims |= {row.row_id: claim_id for row in group.rows}
        return replace(group, claim_id=claim_id, again=bool(claim.get("again")), settled=claim.get("settled") or {})

    def _claim_of(self, said: Mapping[str, Any]) -> str:
        found = said.get("claim_id") or self._claims.get(str(said["row"]))
        if not found:
            raise ValueError(f"row {said['row']} was not claimed in this process. Fix: give claim_id, the claim_id of its group.")
        return str(found)

    def _renew(self, claim_id: str, lease_s: float) -> None:
        body = {"incarnation": self.incarnation, "lease_s": lease_s}
        self.paddock.ask("POST", f"{_API}/claims/{_part(claim_id)}/renew", body, repeatable=True)

    def _unclaim(self, claim_id: str) -> None:
        query = urlencode({"incarnation": self.incarnation})
        self.paddock.ask("DELETE", f"{_API}/claims/{_part(claim_id)}?{query}", repeatable=True)

    def _drained(self, policy: str | None = None) -> bool:
        state = self.state()
        counts = state["counts"] if policy is None else state["policies"][policy]["counts"]
        if any(counts[name] for name in ("running", "settled_unclaimed", "claimed")):
            return False
        if state.get("closed"):
            return True
        stopped = (state.get("feed") or {}).get("stopped")
        if stopped is not None:
            raise FeedStopped(str(stopped["reason"]), str(stopped["message"]))
        failed = int(state["counts"].get("failed", 0))
        if not state.get("feed") and failed > self._failed:
            self._failed = failed
            raise GroupsFailed(failed, self._why_failed())
        return False

    def _why_failed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for group_id in list(self._asked)[: -_LOOKED_AT - 1 : -1]:
            rounds = self.paddock.ask("GET", f"{_API}/groups/{_part(group_id)}")["rounds"]
            if rounds[-1]["state"] != "failed":
                continue
            group = self.paddock._rows(group_id, len(rounds) - 1, None, False)
            found[group_id] = [f"{member.end} ({member.out})" for member in group.members]
        return found

    def _own(self, path: str, body: Mapping[str, Any], *, repeatable: bool = False, wait_s: float = 0.0) -> dict[str, Any]:
        return self._ask("POST", path, {"incarnation": self.incarnation, **body}, repeatable=repeatable, wait_s=wait_s)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        wait_s: float = 0.0,
    ) -> dict[str, Any]:
        return self.paddock.ask(method, self._path + path, body, repeatable=repeatable, wait_s=wait_s)


def _finite(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} in {where} is {value}, which JSON cannot say. Fix: leave it out, and stop the training if it is a loss.")
    return dict(values)


def _reason(reason: str | None) -> dict[str, Any]:
    return {} if reason is None else {"reason": reason}


def _part(name: str) -> str:
    return quote(name, safe="")


def _tar(files: Mapping[str, bytes | str]) -> bytes:
    """The same files are the same bytes: neither times nor owners stand in it."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(files.items()):
            data = content.encode() if isinstance(content, str) else content
            about = tarfile.TarInfo(path.lstrip("/"))
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return gzip.compress(into.getvalue(), mtime=0)


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(value)


def _event(line: bytes) -> Event:
    try:
        found = json.loads(line)
        return Event(str(found["cursor"]), str(found["type"]), found)
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"a line of the events is not one: {line[:200]!r}") from error


def _left(row: Row) -> Outcome:
    return "filtered" if row.unusable_reason == "filtered" else "skipped"


def _between(bounds: Bounds | None) -> str | None:
    if bounds is None or bounds == (None, None):
        return None
    least, most = ("" if one is None else f"{one:.12f}".rstrip("0").rstrip(".") for one in bounds)
    return f"{least}..{most}"
