"""The side of an asynchronous trainer of TRL that speaks for the run: weights before and after they are moved, rows after each step.

Written against trl 1.16.0, experimental/async_grpo/async_grpo_trainer.py: 146-190 and 1766-1800, the protocol of a weight transfer and the order of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from .client import Run, UpdateMode
from .groups import Refused


class TrainerSide:
    """In the trainer's main process. `mode` is what becomes of open calls when weights move."""

    def __init__(self, run: Run, mode: UpdateMode) -> None:
        self._run = run
        self._mode: UpdateMode = mode
        self._trainer: Any = None
        self._version = 0
        self._pausing = False
        self._attached = False
        self._taken: list[Mapping[str, Any]] = []

    def weights(self, transfer: Any) -> Any:
        """TRL's `WeightTransferProtocol` around yours: Paddock is told before and after weights are moved. `transfer` moves them, or does nothing."""
        return _Weights(self, transfer)

    def bind(self, trainer: Any) -> None:
        """Adds the callback that says what became of rows after each step, and what is safe after each checkpoint. Raises `Refused`."""
        moved = trainer.weight_transfer
        if not self._is_worker(trainer.rollout_worker) or not isinstance(moved, _Weights) or moved.side is not self:
            raise Refused("weights", "Paddock would not know of weights. Fix: the rollout_worker of this object, and its weights(transfer) as weight_transfer.")
        self._trainer = trainer
        trainer.add_callback(_callback(import_module("transformers").TrainerCallback, self))

    def _is_worker(self, worker: Any) -> bool:
        return worker is self

    def _begin(self) -> None:
        """Weights are about to move: the first time this speaks for the run."""
        if not self._attached:
            self._run.attach(None if self._trainer is None else self._step or None)
            self._attached = True
        self._run.policy(self._version + 1, "pausing", mode=self._mode)
        self._pausing = True

    def _failed(self) -> None:
        self._run.policy(self._version + 1, "failed")
        self._pausing = False

    def _live(self, version: int) -> None:
        if not self._pausing:
            raise Refused("weights", "weights moved and nobody said so before. Fix: weight_transfer=worker.weights(transfer).")
        self._run.policy(version, "live", step=(self._step or None) if self._trainer else None)
        self._version, self._pausing = version, False

    @property
    def _step(self) -> int:
        return int(self._trainer.state.global_step)

    def _too_old(self, sample: Any) -> bool:
        """Whether TRL drops a sample that it takes now."""
        return bool(self._trainer.model_version - sample.model_version > self._trainer.args.max_staleness)

    def _done(self) -> None:
        """Whatever was taken is trained."""
        taken, self._taken = self._taken, []
        self._say(taken)

    def _say(self, rows: Iterable[Mapping[str, Any]]) -> None:
        said = [{**row, "step": self._step} for row in rows]
        if said:
            self._run.dispose(said)


class _Weights:
    """A weight transfer that Paddock hears of."""

    def __init__(self, side: TrainerSide, transfer: Any) -> None:
        self.side = side
        self._transfer = transfer

    def init_weight_transfer(self) -> None:
        self._transfer.init_weight_transfer()

    def pause(self) -> None:
        self.side._begin()
        self._guarded(self._transfer.pause)

    def send_weights(self, iterator: Iterator[Any]) -> None:
        self._guarded(self._transfer.send_weights, iterator)

    def resume(self) -> None:
        self._guarded(self._transfer.resume)

    def destroy(self) -> None:
        self._transfer.destroy()

    def _guarded(self, call: Any, *given: Any) -> None:
        try:
            call(*given)
        except BaseException:
            self.side._failed()
            raise


def _callback(base: Any, side: TrainerSide) -> Any:
    class PaddockCallback(base):  # type: ignore[misc]
        """What the trainer took up to a step was for it: it prefetches, and tells no more."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            side._done()

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            side._done()
            side._run.checkpoint(state.global_step)

    return PaddockCallback()
