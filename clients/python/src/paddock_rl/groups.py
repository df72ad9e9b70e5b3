"""Groups for a trainer that asks prompt by prompt: opened, done by a harness of yours or by Paddock, claimed once they have settled.

What adapters of trainers have in common. One process per run asks and claims: a claim takes what has settled first, whoever asked for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from .advantages import advantages
from .client import Run
from .convert._rows import MultiRow, NoNumber, Several, one_row, rows_of, slots
from .errors import Rejected, Unanswered
from .rows import Group, Member, Row

__all__ = [
    "Asked",
    "Groups",
    "Harness",
    "MultiRow",
    "NoNumber",
    "OpenRollout",
    "Place",
    "Refused",
    "Steps",
    "Task",
    "check_temperature",
    "chosen",
    "places",
    "require_numbers",
]

_NOTHING = ("infra", "cancelled")
_GROUP_KEYS = frozenset({"deadline_s", "horizon", "inject", "labels", "min_usable", "on_cut", "priority", "prompt_variant"})
_GONE = ("ROUND_SETTLED", "STORE_CONFLICT")


class Refused(ValueError):
    """A setting under which the trainer would train on something else than was recorded. `code` names it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(frozen=True)
class OpenRollout:
    """A rollout that waits for its harness: call the model at `base_url` with `key`."""

    prompt: Any
    """The trainer's: a text, a list of messages, or a row of its data set."""
    base_url: str
    key: str
    rollout_id: str
    group_id: str
    slot: int
    attempt: int


Harness = Callable[[OpenRollout], "float | None | Mapping[str, Any]"]
"""Does a rollout and answers its reward, None where nobody can tell, or a body of `POST /rollouts/{id}/end` with a verdict. What
it raises is a failure of the infrastructure: the rollout ends as `infra`. A failure of the agent is a reward."""

Task = Callable[[Any], "Mapping[str, Any] | str"]
"""Makes a task of a prompt: the name of one of the run's tasks, or `{name, instruction}`."""


@dataclass(frozen=True)
class Asked:
    """A group to open: `n` rollouts of one prompt."""

    prompt: Any
    n: int


@dataclass
class _Wanted:
    """A group that was asked for, and how many further rollouts it may have."""

    group_id: str
    asked: Asked
    spare: int
    left: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    found: Future[Group | None] = field(default_factory=Future)

    def again(self) -> bool:
        with self.lock:
            self.spare -= 1
            return self.spare >= 0

    def last(self) -> bool:
        """Whether this was the last of its members."""
        with self.lock:
            self.left -= 1
            return self.left == 0


class Groups:
    """The groups of one run. `harness` does the rollouts; without it Paddock does them, in a run with `tasks`.

    `task` makes a task of a prompt (default: its text). `spare` further rollouts a group may have where members come to nothing (a failed
    infrastructure, no number). `group` holds further keys of the groups (`deadline_s, horizon, on_cut, labels, ...`). Claims are leased for `lease_s`
    seconds and renewed each third of that. Raises `Refused`.
    """

    def __init__(
        self,
        run: Run,
        *,
        harness: Harness | None = None,
        task: Task | None = None,
        spare: int = 0,
        group: Mapping[str, Any] | None = None,
        at_once: int = 16,
        lease_s: float = 300.0,
    ) -> None:
        inside = run.opened.get("tasks") is not None
        if harness is None and not inside:
            raise Refused("no_harness", "nobody does the rollouts. Fix: give harness, or open the run with tasks.")
        if harness is not None and inside:
            raise Refused("two_harnesses", "Paddock does the rollouts of a run with tasks. Fix: leave out harness, or tasks.")
        if inside and task is None:
            raise Refused("no_task", "which of the run's tasks is a prompt of? Fix: give task.")
        if unknown := set(group or {}) - _GROUP_KEYS:
            raise Refused("group_key", f"{sorted(unknown)} cannot be said of a group here; {sorted(_GROUP_KEYS)} can.")
        if spare < 0 or at_once < 1:
            raise Refused("number", "spare is 0 or more, and at_once 1 or more.")
        self.run = run
        self._harness = harness
        self._task = task or task_of
        self._spare = spare
        self._group = dict(group or {})
        self._at_once = at_once
        self._lease_s = lease_s
        self._asked = count()
        self._open: dict[str, _Wanted] = {}
        self._named: dict[Any, _Wanted] = {}
        self._lock = threading.RLock()
        self._claiming = threading.Lock()
        self._pool = ThreadPoolExecutor(at_once, "paddock-rollout")
        self._claimer = ThreadPoolExecutor(1, "paddock-claim")

    def settled(self, asked: Sequence[Asked], step: int) -> list[Group | None]:
        """A group for each, once all have settled; None where no member of it is usable. Groups that another process had asked for
        are disposed of as stale at `step`."""
        wanted = self._submit(asked)
        if self._harness is not None:
            self._do(wanted, self._harness)
        return [self._collect(one, step) for one in wanted]

    def share(self, name: Any, asked: Asked, step: int) -> Future[Group | None]:
        """Does one rollout of the group that is known by `name`, in this thread; its group comes once all `n` of it are done. Call it `n` times for each
        name, from threads that run at once.
        """
        wanted = self._one(name, asked)
        if wanted.last():
            with self._lock:
                self._named.pop(name, None)
            self._finish(wanted, step)
        return wanted.found

    def give_up(self, name: Any) -> None:
        """Nobody wants the group that is known by `name` any more: its calls end."""
        with self._lock:
            wanted = self._named.get(name)
        if wanted is not None:
            self.run.paddock.cancel_group(wanted.group_id)

    async def member(self, name: Any, asked: Asked, step: int) -> Group | None:
        """The same in a thread of its own, for trainers that ask sample by sample: call it from tasks that run at once."""
        found = await asyncio.get_running_loop().run_in_executor(self._pool, self.share, name, asked, step)
        # Shielded: a task that is cancelled would cancel it for the others.
        return await asyncio.shield(asyncio.wrap_future(found))

    def close(self) -> None:
        """Ends its threads."""
        for pool in (self._pool, self._claimer):
            pool.shutdown(cancel_futures=True)

    def _one(self, name: Any, asked: Asked) -> _Wanted:
        with self._lock:
            wanted = self._named.get(name)
            if wanted is None:
                (wanted,) = self._submit([asked])
                self._named[name] = wanted
        try:
            if self._harness is not None:
                self._fill(wanted, self._harness)
        except Exception as error:
            _fail(wanted, error)
        return wanted

    def _finish(self, wanted: _Wanted, step: int) -> None:
        try:
            if self._harness is not None:
                # It waits for the further rollouts that it may have; there will be none.
                self.run.paddock.cancel_group(wanted.group_id)
        except Exception as error:
            _fail(wanted, error)
        self._claimer.submit(self._await, wanted, step)

    def _await(self, wanted: _Wanted, step: int) -> None:
        try:
            self._collect(wanted, step)
        except Exception as error:
            _fail(wanted, error)

    def _submit(self, asked: Sequence[Asked]) -> list[_Wanted]:
        wanted = []
        for one in asked:
            name = f"{self.run.run_id}-{self.run.incarnation}-{next(self._asked)}"
            wanted.append(_Wanted(name, one, self._spare, one.n))
        bodies = [
            {**self._group, "group_id": one.group_id, "task": self._task(one.asked.prompt), "n": one.asked.n, "top_up": self._spare}
            for one in wanted
        ]
        self.run.submit(bodies)
        with self._lock:
            self._open.update({one.group_id: one for one in wanted})
        return wanted

    def _do(self, wanted: Sequence[_Wanted], harness: Harness) -> None:
        members = [self._pool.submit(self._fill, one, harness) for one in wanted for _ in range(one.asked.n)]
        try:
            for member in members:
                member.result()
        finally:
            for member in members:
                member.cancel()
            wait(members)
            # A group that may still have further rollouts waits for them; there will be none.
            for one in wanted:
                self.run.paddock.cancel_group(one.group_id)

    def _fill(self, wanted: _Wanted, harness: Harness) -> None:
        """A member of a group: rollouts until one has a number, or the group may have no more."""
        slot: dict[str, Any] = {}
        paddock = self.run.paddock
        while True:
            try:
                opened = paddock.open_rollout(wanted.group_id, **slot)
                place = {key: opened[key] for key in ("base_url", "key", "rollout_id", "slot", "attempt")}
                ended = paddock.end_rollout(
                    opened["rollout_id"], **_ended(harness, OpenRollout(wanted.asked.prompt, group_id=wanted.group_id, **place))
                )
            except Rejected as error:
                # Its deadline came meanwhile, and the group has settled with what there was.
                if error.code in _GONE and self._state(wanted.group_id) != "running":
                    return
                raise
            nothing = ended["end"] in _NOTHING
            if (not nothing and ended["reward"] is not None) or not wanted.again():
                return
            # A slot whose rollout counts keeps it: another one begins beside it.
            slot = {"slot": ended["slot"]} if nothing else {}

    def _state(self, group_id: str) -> str:
        found = self.run.paddock.ask("GET", f"/rl/v1/groups/{group_id}")
        return str(found["rounds"][-1]["state"])

    def _collect(self, wanted: _Wanted, step: int) -> Group | None:
        """Waits until the group has settled, and takes whatever else has."""
        while not wanted.found.done():
            with self._claiming:
                if not wanted.found.done():
                    self._claim(step)
        return wanted.found.result()

    def _claim(self, step: int) -> None:
        with self._lock:
            missing = dict(self._open)
        # A group without a usable member is never handed out.
        failed = [name for name in missing if self._state(name) == "failed"]
        for name in failed:
            self._open.pop(name).found.set_result(None)
        # Whoever waits for one of those is not to wait for the others.
        if failed or not missing:
            return
        try:
            claimed = self.run.claim(len(missing), lease_s=self._lease_s)
        except Unanswered:
            return
        for group in claimed:
            wanted = self._open.pop(group.group_id, None)
            if wanted is None:
                # Of a process before this one: the trainer takes rollouts of its own prompts under its own weights.
                self.run.dispose_group(group, step, "stale", reason="another process asked for it")
            elif not wanted.found.done():
                wanted.found.set_result(group)


def _fail(wanted: _Wanted, error: Exception) -> None:
    """Whoever waits for the group is told."""
    if not wanted.found.done():
        wanted.found.set_exception(error)


def chosen(group: Group, n: int) -> list[Member]:
    """`n` members at most, those with a number first; in the order of their slots."""
    members = slots(group)
    known = [member for member in members if member.number is not None]
    rest = [member for member in members if member.number is None]
    found = {member.rollout_id for member in (known + rest)[:n]}
    return [member for member in members if member.rollout_id in found]


@dataclass(frozen=True)
class Place:
    """What one of a trainer's `n` samples gets of a group."""

    number: float
    """Its own, or the mean of the others'."""
    masked: bool
    """It has no number of its own, and nothing of it may train."""
    rows: Sequence[Row]
    """Those that stand for it, its last one last; none where it never called the model."""
    lost: int
    """Trained tokens of other rows, with `main_chain`."""


def places(group: Group | None, n: int, several: Several | Literal["all"], temperature: float | None) -> list[Place]:
    """A place for each of the `n` that were asked for. Raises `NoNumber` where nobody has a number, for then there is no mean, `MultiRow`,
    and `Refused` where a row was sampled at another temperature than the trainer counts with (None: whatever it is).
    """
    members: list[Member | None] = [] if group is None else list(chosen(group, n))
    known = [member.number for member in members if member is not None and member.number is not None]
    if group is None or not known:
        name = "a group" if group is None else f"group {group.group_id}"
        raise NoNumber(f"no rollout of {name} has a number after all attempts. Fix: more spare.")
    mean = math.fsum(known) / len(known)
    found = []
    for member in members + [None] * (n - len(members)):
        if member is None:
            found.append(Place(mean, True, [], 0))
        elif member.number is None:
            found.append(Place(mean, True, rows_of(group, member)[-1:], 0))
        elif several == "all":
            found.append(Place(member.number, False, rows_of(group, member), 0))
        else:
            row, lost = one_row(group, member, several)
            found.append(Place(member.number, False, [] if row is None else [row], lost))
    for place in found:
        for row in [] if place.masked else place.rows:
            check_temperature(row, temperature)
    return found


def check_temperature(row: Row, temperature: float | None) -> None:
    """Raises `Refused` where it was sampled at another one than the trainer counts with."""
    other = [value for _, _, value in row.temperatures if value is not None and value != temperature]
    if other and temperature is not None:
        raise Refused("temperature", f"row {row.row_id} was sampled at {other[0]}, and the trainer counts with {temperature}.")


def require_numbers(found: Sequence[Place]) -> None:
    """Raises `NoNumber` where a place has none of its own."""
    if missing := sum(place.masked for place in found):
        raise NoNumber(f"{missing} of {len(found)} rollouts of a group have no number after all attempts. Fix: more spare, or another null.")


class Steps:
    """The clock of a trainer that only asks for batches: attaches at its first one, announces weights, says what became of rows.

    `at(step)` is called before the rollouts of a step: what earlier steps were given has been trained then. `weights` is the number of the
    weights that sample them. `announce` False: your own hook says `pausing` and `live`, and what became of rows, as trainers that sample while they train need: which rows
    a step has taken is not known here then.
    `method` is the preset of `advantages` by which the trainer computes, where dispositions shall tell the advantage.
    """

    def __init__(self, run: Run, *, announce: bool = True, method: str | None = None) -> None:
        self.run = run
        self._announce = announce
        self._method = method
        self._step: int | None = None
        self._given: list[tuple[int, Group, frozenset[str]]] = []
        self._lock = threading.Lock()

    def at(self, step: int, weights: int, resume_step: int | None, before: Callable[[], None] | None = None) -> None:
        """The trainer is at `step`. The first time it speaks for the run, gone on from the checkpoint of `resume_step`. `before` is done before weights are announced."""
        with self._lock:
            if self._step is not None and step < self._step:
                raise Refused("clock", f"step {step} comes after step {self._step}. Fix: a new process goes on from a checkpoint.")
            if self._step is None:
                self.run.attach(resume_step)
            if self._step == step:
                return
            if before is not None:
                before()
            if self._announce:
                self._say(step)
                there = self.run.state()["policy"] if self._step is None else {"version": None}
                label = there["label"] if there["version"] == weights else None
                self.run.policy(weights, "pausing")
                # Made by the update of the step before, or by that of the checkpoint.
                self.run.policy(weights, "live", step=self._step if self._step is not None else resume_step, label=label)
            self._step = step

    def gave(self, step: int, group: Group, rows: Sequence[str]) -> None:
        """The trainer has these rows of a group."""
        if not self._announce:
            return
        with self._lock:
            self._given.append((step, group, frozenset(rows)))

    def done(self, step: int | None = None) -> None:
        """Everything up to `step` is trained (default: whatever was given). `at` says it of all steps before."""
        with self._lock:
            self._say(math.inf if step is None else step + 1)

    def checkpoint(self, step: int) -> None:
        """The weights after `step` are safe on disk."""
        self.done(step)
        self.run.checkpoint(step)

    def finish(self) -> None:
        """The training is over: whatever was given is trained, and another run may announce weights."""
        self.done()
        self.run.finish()
        self.run.close()

    def _say(self, before: float) -> None:
        due = [one for one in self._given if one[0] < before]
        self._given = [one for one in self._given if one[0] >= before]
        said: list[Mapping[str, Any]] = []
        for step, group, given in due:
            computed = advantages(group, self._method) if self._method else None
            for row in group.rows:
                if row.row_id in given:
                    worth = computed.by_rollout.get(row.rollout_id) if computed else None
                    outcome = "no_signal" if computed and computed.no_signal else "used"
                    said.append({"row": row.row_id, "step": step, "outcome": outcome, "advantage": worth, "reward_used": row.reward})
                else:
                    reason = row.unusable_reason or "not given to the trainer"
                    said.append({"row": row.row_id, "step": step, "outcome": "skipped", "reason": reason})
        if said:
            self.run.dispose(said)


def _ended(harness: Harness, opened: OpenRollout) -> dict[str, Any]:
    """How a rollout ended, as the route takes it."""
    try:
        said = harness(opened)
    except Exception as error:
        return {"end": "infra", "detail": f"{type(error).__name__}: {error}"[:500]}
    if isinstance(said, Mapping):
        if said.get("verdict") is None and said.get("end") not in _NOTHING:
            raise Refused("verdict", "the trainer does not wait for a later verdict. Fix: answer a body with verdict, a number, or None.")
        return dict(said)
    if said is None:
        return {"verdict": {"source": "harness", "reward": None, "status": "unscorable", "reason": "the harness gave no number"}}
    return {"verdict": {"source": "harness", "reward": float(said)}}


def task_of(prompt: Any) -> dict[str, Any]:
    """A task of a prompt's own words: the text, or what the messages say."""
    text = prompt if isinstance(prompt, str) else "\n".join(str(message["content"]) for message in prompt)
    return {"name": f"prompt-{hashlib.sha256(text.encode()).hexdigest()[:12]}", "instruction": text}
