"""TRL's asynchronous GRPO drives sessions of your harness: the session factory of its `HarnessRolloutWorker`.

    # my_project/rollouts.py: TRL's worker opens this in a process of its own
    def groups() -> Groups:
        return Groups(Paddock(url).run("trl", purpose="train"), harness=solve, spare=2)

    sessions = Sessions(Paddock(url).run("trl", purpose="train"), groups, n=8)
    worker = sessions.worker(dataset=data, processing_class=tokenizer, eos_token_ids=[...], temperature=1.0, ...)
    trainer = AsyncGRPOTrainer(model, args=config, rollout_worker=worker, weight_transfer=sessions.weights(to_engine))
    sessions.bind(trainer)
    trainer.train()

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| TRL's counter, which `create` gets as `seed` | TRL, from `verify` | a reward of None and a trace without turns, so no sample | turns that do not go on from the last one: a sample each |

Written against trl 1.16.0, experimental/async_grpo/openenv_harness.py, and openenv 0.10.0, core/harness/training.py. There

- `_HarnessRolloutLoop.__init__` calls the factory's builder with `sampling`, in the worker's process;
- `_run_session`: `create(prompt, seed, episode_id)`, `wait_for_completion`, `fetch_training_trace`, `verify`, `close`, from a thread for each session; `close` comes from
  another thread when the worker stops. What fails is an unscorable rollout, and a trace that is not valid stops the worker;
- `_chain_to_sequences`, with a threshold of 0: a turn whose prompt begins with all that came before goes on in its sample, any other begins a new one. Nothing is tokenised again.

Prompt ids, masks and logprobs are those of rows, so calls beside the agent's own are classed already, and a token that another row owns is masked. Before TRL asked for
`fetch_training_trace` it tokenised prompts again from `fetch_proxy_trace`; that is refused here. Nothing of TRL or OpenEnv is imported before `worker`.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .client import Run, UpdateMode
from .convert._rows import numbers, rows_of
from .groups import Asked, Groups, OpenRollout, Refused, check_temperature, chosen
from .rows import Group, Member, Row
from .trl_side import TrainerSide

__all__ = ["Groups", "OpenRollout", "Refused", "Sessions"]

_NEUTRAL: Mapping[str, Sequence[float]] = {"top_p": (1.0,), "top_k": (0, -1), "min_p": (0.0,), "repetition_penalty": (1.0,)}
_ROWS = "paddock_rows"
_DRAIN_S = 0.2


class Sessions(TrainerSide):
    """The trainer's side. `groups` opens the run's groups in the worker's process, so it is a function of a module and opens the same run; `n` is TRL's
    `num_generations`; `mode` is what becomes of open calls when weights move.
    """

    def __init__(self, run: Run, groups: Callable[[], Groups], n: int, *, mode: UpdateMode = "drain") -> None:
        super().__init__(run, mode)
        if n < 1:
            raise Refused("number", "n is 1 or more.")
        self._open = groups
        self._n = n
        self._worker: Any = None
        self._said: set[str] = set()

    def worker(self, *, max_inflight_tasks: int = 128, **given: Any) -> Any:
        """TRL's `HarnessRolloutWorker` with these sessions; `given` are its arguments. Raises `Refused`."""
        if max_inflight_tasks < self._n:
            raise Refused("inflight", f"a group of {self._n} would wait for members that cannot begin. Fix: max_inflight_tasks of {self._n} or more.")
        if given.get("harness_adapter") is not None or not given.get("lossless_capture", True):
            raise Refused("capture", "rows would not be what was recorded. Fix: no harness_adapter, and lossless_capture as it is.")
        kind = _worker(import_module("trl.experimental.async_grpo.openenv_harness").HarnessRolloutWorker, self)
        given = {"reward_funcs": [], "model_name": "", **given}
        self._worker = kind(harness_session_factory=self, num_generations=self._n, max_inflight_tasks=max_inflight_tasks, **given)
        return self._worker

    def __reduce__(self) -> Any:
        # What goes into the worker's process: by then the trainer has attached.
        return Factory, (self._open, self._run.run_id, self._run.incarnation, self._n)

    def _is_worker(self, worker: Any) -> bool:
        return worker is not None and worker is self._worker

    def _live(self, version: int) -> None:
        if not self._attached:
            # TRL goes on from a checkpoint: no weights are live yet.
            self._version = version
            return
        super()._live(version)

    def _take(self, sample: Any) -> None:
        """The trainer takes a sample, or drops it for its age."""
        outcome = "stale" if self._too_old(sample) else "used" if sample.advantage else "no_signal"
        for row in self._rows(sample):
            self._taken.append({**row, "outcome": outcome, "advantage": sample.advantage, "reward_used": sample.metrics["reward"]})

    def _left(self, samples: Iterable[Any]) -> None:
        """The worker has stopped: what the trainer did not take is trained by nobody."""
        self._done()
        reason = "the training ended before it was taken"
        self._say([{**row, "outcome": "skipped", "reason": reason} for sample in samples for row in self._rows(sample)])

    def _rows(self, sample: Any) -> list[dict[str, Any]]:
        """The rows that a sample holds, with the claim that they came with: each is a beginning of it."""
        ids = [int(each) for each in sample.input_ids]
        found = []
        for claim, row, length, digest in sample.completion[-2][_ROWS] if len(sample.completion) > 1 else []:
            if row not in self._said and length <= len(ids) and _digest(ids[:length]) == digest:
                self._said.add(row)
                found.append({"row": row, "claim_id": claim})
        return found


class Factory:
    """The session factory, in the worker's process: TRL calls it once with the sampling that it trains by, and then `create` for each rollout."""

    def __init__(self, open: Callable[[], Groups], run_id: str, incarnation: int, n: int) -> None:
        self._open = open
        self._about = (run_id, incarnation)
        self._n = n
        self._temperature: float | None = None
        self._groups: Groups | None = None
        self._shared: dict[int, _Shared] = {}
        self._lock = threading.Lock()

    def __call__(self, sampling: Mapping[str, Any] | None = None) -> Factory:
        for name, neutral in _NEUTRAL.items():
            if (value := (sampling or {}).get(name)) is not None and value not in neutral:
                raise Refused("sampling", f"{name} is {value} in the trainer, and harnesses sample by the run. Fix: say it in the run's sampling.")
        self._temperature = (sampling or {}).get("temperature")
        self._groups = self._open()
        run_id, incarnation = self._about
        if self._groups.run.run_id != run_id:
            raise Refused("run", f"groups are of run {self._groups.run.run_id}, and the trainer speaks for {run_id}. Fix: open the same run.")
        self._groups.run.join(incarnation)
        return self

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> Session:
        """A session of the group that TRL knows by `seed`."""
        if self._groups is None or seed is None:
            raise Refused("group", "TRL's counter of groups is their name. Fix: a TRL that calls the builder, and create with seed (trl 1.16).")
        with self._lock:
            shared = self._shared.setdefault(seed, _Shared(seed, Asked(task, self._n)))
            shared.created += 1
            if shared.created == self._n:
                del self._shared[seed]
        return Session(self._groups, shared, self._temperature)


@dataclass
class _Shared:
    """What the sessions of one group have in common."""

    name: int
    asked: Asked
    created: int = 0
    served: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def place(self) -> int:
        """The next one: which session gets which rollout of the group makes no difference to it."""
        with self.lock:
            self.served += 1
            return self.served - 1


class Session:
    """One rollout. Its group is settled and handed out whole, so it waits for the others of its group."""

    def __init__(self, groups: Groups, shared: _Shared, temperature: float | None) -> None:
        self._groups = groups
        self._shared = shared
        self._temperature = temperature
        self._closed = threading.Event()
        self._over: Future[None] = Future()
        self._group: Group | None = None
        self._member: Member | None = None

    def wait_for_completion(self, timeout_s: float | None = None) -> int:
        """Does the rollout, and waits until its group has settled. Raises `TimeoutError` where the agent's time was over: what it did is there all the same."""
        found = self._groups.share(self._shared.name, self._shared.asked, _step(self._groups.run))
        wait([found, self._over], timeout_s, FIRST_COMPLETED)
        if not found.done():
            raise RuntimeError("the session was closed, or its time was over, before its group had settled")
        self._group = found.result()
        place = self._shared.place()
        if self._group is not None:
            members = chosen(self._group, self._shared.asked.n)
            self._member = members[place] if place < len(members) else None
            if place == 0:
                self._leave_out(self._group, members)
        if self._member is not None and self._member.end == "agent_timeout":
            raise TimeoutError(f"rollout {self._member.rollout_id} ran out of its time")
        return 0

    def fetch_training_trace(self) -> Any:
        """OpenEnv's `TrainingTrace`: the turns of each row, with exact ids; none of a rollout without a number."""
        made = import_module("openenv.core.harness.training")
        rows = self._rows()
        turns = [turn for row in rows for turn in _turns(row)]
        if turns and self._group is not None:
            # TRL carries the last request along with each sample, and the trainer's side knows by it which rows are in it.
            turns[-1]["request"]["messages"] = [{"role": "user", "content": "", _ROWS: [[self._group.claim_id, *_mark(row)] for row in rows]}]
        return made.TrainingTrace(turns=[made.TrainingTurn(**turn) for turn in turns])

    def fetch_proxy_trace(self) -> Any:
        """What TRL asked for before it took ids as they are."""
        raise Refused("proxy_trace", "TRL would tokenise the prompts again. Fix: a TRL that asks for fetch_training_trace (trl 1.16).")

    def verify(self, transcript: Any, final_state: Any = None) -> Any:
        """`env_reward` is the verdict's number, and None where there is none."""
        return SimpleNamespace(env_reward=None if self._member is None else self._member.number, done=True, metrics={}, artifacts={})

    def close(self) -> None:
        """From any thread, any number of times. Of a session that still runs the group is given up, so its calls end and whoever waits is let go."""
        if not self._closed.is_set():
            self._closed.set()
            if self._group is None:
                self._groups.give_up(self._shared.name)
            self._over.set_result(None)

    def _rows(self) -> list[Row]:
        if self._group is None or self._member is None or self._member.number is None:
            return []
        rows = [row for row in rows_of(self._group, self._member) if _trains(row)]
        for row in rows:
            check_temperature(row, self._temperature)
        return rows

    def _leave_out(self, group: Group, members: Sequence[Member]) -> None:
        """Says of rows that no sample will have that nobody trains them."""
        given = {member.rollout_id for member in members if member.number is not None}
        rest = [row for row in group.rows if row.rollout_id not in given or not _trains(row)]
        step = _step(self._groups.run)
        if rest:
            self._groups.run.dispose(
                [{"row": row.row_id, "step": step, "outcome": "skipped", "reason": row.unusable_reason or "nothing of it trains"} for row in rest]
            )


def _step(run: Run) -> int:
    """The trainer's, as far as the worker's process knows: its first weights are version 1, of step 0."""
    return max(int(run.state()["policy"]["version"] or 1) - 1, 0)


def _trains(row: Row) -> bool:
    return row.usable and any(row.loss_mask)


def _turns(row: Row) -> list[dict[str, Any]]:
    """A turn for each answer of a row: what comes before it is its prompt."""
    ids, mask, logprobs = list(row.token_ids), list(row.loss_mask), numbers(row)
    return [
        {
            "node_id": f"{row.row_id}/{place}",
            "prompt_token_ids": ids[:start],
            "completion_token_ids": ids[start:end],
            "per_token_logps": logprobs[start:end],
            "loss_mask": [0] * start + mask[start:end],
            "request": {"messages": [], "tools": None},
            "response": {"choices": [{"message": {"role": "assistant", "content": ""}}]},
        }
        for place, (start, end) in enumerate(row.turn_spans)
    ]


def _mark(row: Row) -> list[Any]:
    """A row's name, and by what it is known in a sample: how long it is up to its last answer, and the digest of that."""
    end = max(end for _, end in row.turn_spans)
    return [row.row_id, end, _digest(list(row.token_ids)[:end])]


def _digest(ids: Sequence[int]) -> str:
    return hashlib.sha256(array("q", ids).tobytes()).hexdigest()[:16]


class _Taken:
    """TRL's queue between processes, for the trainer's: what is taken from it is noted. In the worker's process it is the queue itself."""

    def __init__(self, inner: Any, taken: Callable[[Any], None]) -> None:
        self._inner = inner
        self._note = taken

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        sample = self._inner.get(block, timeout)
        self._note(sample)
        return sample

    def get_nowait(self) -> Any:
        return self.get(False)

    def __reduce__(self) -> Any:
        return _itself, (self._inner,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _itself(inner: Any) -> Any:
    return inner


def _worker(base: Any, sessions: Sessions) -> Any:
    class PaddockHarnessWorker(base):  # type: ignore[misc]
        """TRL's worker, whose trainer says what becomes of weights and rows."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.rollout_buffer = _Taken(self.rollout_buffer, sessions._take)

        def start(self) -> None:
            if sessions._trainer is None:
                raise Refused("not_bound", "nobody would say what became of rows. Fix: call bind(trainer) before train().")
            super().start()

        def update_model_version(self, model_version: int) -> None:
            sessions._live(model_version)
            super().update_model_version(model_version)

        def stop(self) -> None:
            if self._process is None:
                return
            super().stop()
            left = []
            with contextlib.suppress(queue.Empty):
                while True:
                    left.append(self.rollout_buffer._inner.get(timeout=_DRAIN_S))
            sessions._left(left)

    return PaddockHarnessWorker
