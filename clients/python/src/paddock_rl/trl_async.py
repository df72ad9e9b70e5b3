"""TRL's asynchronous GRPO trains on rollouts of your harness: its rollout worker and its weight transfer.

    worker = Worker(Groups(run, harness=solve, spare=2), prompts, n=8)
    trainer = AsyncGRPOTrainer(model, args=config, rollout_worker=worker, weight_transfer=worker.weights(to_engine))
    worker.bind(trainer)
    trainer.train()

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `group_id` of a sample | this module, by `advantages(group, "trl")` | no sample, and in no mean | a sample each, with the same advantage |

Written against trl 1.16.0, experimental/async_grpo. There

- `async_grpo_trainer.py` 115-190: the protocols of worker and weight transfer, which a trainer takes as objects of any class;
- 228-235 and 1766-1800: weights are moved between `pause` and `resume`, then the version counts up and the worker is told; the first time before `start`;
- 345-372: samples older than `max_staleness` versions are dropped when they are taken from the queue, so that much is known here.

Ids are those of the engine, none are tokenised again, and rows that train nothing are no samples. A sample's version is the oldest that sampled a token of it.
Its trainer asks for a GPU's attention kernels: test/real/trl_async_test.py puts the worker through its queue, batcher, collator and weight sync. Nothing of TRL is imported before `start`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from .advantages import advantages
from .client import UpdateMode
from .groups import Asked, Groups, OpenRollout, Refused, check_temperature
from .rows import Group
from .trl import rollout_samples
from .trl_side import TrainerSide

__all__ = ["Groups", "OpenRollout", "Refused", "Worker"]

_POLL_S = 0.2


class Worker(TrainerSide):
    """TRL's `RolloutWorkerProtocol`, in the trainer's main process.

    `prompts` is what groups of `n` rollouts are asked for, one after another; `ahead` of them go on at once, and at most `waiting` samples wait for the trainer
    (default: those of `ahead` groups), so that rollouts are not sampled long before they are trained. `mode` is what becomes of open calls when weights move.
    """

    def __init__(
        self, groups: Groups, prompts: Iterable[Any], n: int, *, ahead: int = 2, waiting: int | None = None, mode: UpdateMode = "drain"
    ) -> None:
        super().__init__(groups.run, mode)
        if n < 1 or ahead < 1 or (waiting is not None and waiting < 1):
            raise Refused("number", "n, ahead and waiting are 1 or more.")
        self.groups = groups
        self.rollout_buffer: queue.Queue[Any] = _Buffer(self._take, waiting or n * ahead)
        self.metrics_queue: queue.Queue[Any] = queue.Queue()
        self._prompts: Iterator[Any] = iter(prompts)
        self._n = n
        self._ahead = ahead
        self._numbers = count()
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._sign = time.monotonic()
        self._queued: dict[int, _Queued] = {}

    def start(self) -> None:
        """TRL's, once its first weights are live."""
        if self._trainer is None:
            raise Refused("not_bound", "nobody would say what became of rows. Fix: call bind(trainer) before train().")
        self._sign = time.monotonic()
        self._threads = [threading.Thread(target=self._produce, name=f"paddock-group-{index}", daemon=True) for index in range(self._ahead)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """TRL's: groups under way go on to their end, and what the trainer did not take is trained by nobody."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        with self._lock:
            left = [one.row for one in self._queued.values()]
            self._queued.clear()
        self._done()
        self._say([{"row": row, "outcome": "skipped", "reason": "the training ended before it was taken"} for row in left])

    def update_model_version(self, model_version: int) -> None:
        """TRL's: these weights are live from here on."""
        self._live(model_version)

    def check_health(self, stale_after_s: float) -> None:
        """TRL's, while it waits for samples: raises where none will come, or where no group began or settled for that long."""
        if self._error is not None:
            raise RuntimeError("the rollouts failed") from self._error
        if self._threads and not any(thread.is_alive() for thread in self._threads) and self.rollout_buffer.empty():
            raise RuntimeError("there are no more prompts, and the trainer wants samples. Fix: prompts that go on, or fewer steps.")
        silent = time.monotonic() - self._sign
        if silent > stale_after_s:
            raise TimeoutError(f"no group began or settled for {silent:.0f} s. Fix: deadline_s of groups, or a longer time in the trainer's arguments.")

    def _begin(self) -> None:
        if not self._attached and self._trainer is not None and self._step > 0:
            raise Refused("resume", "TRL counts versions from 0 again with a worker of one's own. Fix: a new run.")
        super()._begin()

    def _produce(self) -> None:
        try:
            while not self._stopped.is_set():
                with self._lock:
                    prompt = next(self._prompts, _END)
                if prompt is _END:
                    return
                self._sign = time.monotonic()
                (group,) = self.groups.settled([Asked(prompt, self._n)], self._step)
                self._sign = time.monotonic()
                self._hand(group)
        except BaseException as error:
            self._error = error

    def _hand(self, group: Group | None) -> None:
        """A settled group into the queue. Where nobody has a number there is nothing to queue."""
        computed = None if group is None else advantages(group, "trl")
        if group is None or computed is None or not computed.rows:
            self.metrics_queue.put({"paddock/groups_without_number_total": 1.0})
        if group is None or computed is None:
            return
        for row in group.trainable():
            check_temperature(row, float(self._trainer.args.temperature))
        samples = rollout_samples(group, computed, next(self._numbers))
        rows = [found for found in computed.rows if found.advantage is not None]
        queued = {found.row_id for found in rows}
        rest = [row for row in group.rows if row.row_id not in queued]
        self._say([{"row": row.row_id, "outcome": "skipped", "reason": row.unusable_reason or "nothing of it trains"} for row in rest])
        for sample, found in zip(samples, rows, strict=True):
            self._put(sample, _Queued(found.row_id, sample, found.advantage, found.reward_used, computed.no_signal))

    def _put(self, sample: Any, queued: _Queued) -> None:
        with self._lock:
            self._queued[id(sample)] = queued
        while not self._stopped.is_set():
            try:
                self.rollout_buffer.put(sample, timeout=_POLL_S)
                self._sign = time.monotonic()
                return
            except queue.Full:
                # A trainer that computes is no worker that stands still.
                self._sign = time.monotonic()

    def _take(self, sample: Any) -> None:
        """The trainer takes a sample, or drops it for its age."""
        with self._lock:
            one = self._queued.pop(id(sample), None)
        if one is None:
            return
        outcome = "stale" if self._too_old(sample) else "no_signal" if one.no_signal else "used"
        self._taken.append({"row": one.row, "outcome": outcome, "advantage": one.advantage, "reward_used": one.reward_used})


_END = object()


@dataclass(frozen=True)
class _Queued:
    """A sample that waits. It is kept, so that its id stays its own."""

    row: str
    sample: Any
    advantage: float | None
    reward_used: float | None
    no_signal: bool


class _Buffer(queue.Queue[Any]):
    """The queue that TRL drains."""

    def __init__(self, taken: Any, most: int) -> None:
        super().__init__(most)
        self._taken = taken

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        sample = super().get(block, timeout)
        self._taken(sample)
        return sample
