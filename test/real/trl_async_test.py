"""`paddock_rl.trl_async` on a real `paddock serve`: through TRL's own queue, batcher, collator and weight sync. Its trainer wants a GPU's kernels, so what
calls the worker here are its own callback and method, on an object that has of the trainer what those look at.
"""

from __future__ import annotations

import statistics
import sys
import unittest
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]
warnings.filterwarnings("ignore")

from accelerate import PartialState  # noqa: E402
from paddock_rl.trl_async import Refused, Worker  # noqa: E402
from served import EACH, FATES, Script, Served  # noqa: E402
from trl.experimental.async_grpo import async_grpo_trainer as asynchronous  # noqa: E402

# TRL's log lines want to know of other processes.
PartialState(cpu=True)


class Transfer:
    """Weights that are moved to nowhere, and what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.asked.append(name)


class Trainer(SimpleNamespace):
    """What TRL's callback and weight sync look at of their trainer."""

    def __init__(self, worker: Worker, transfer: Any, **args: Any) -> None:
        accelerator = SimpleNamespace(is_main_process=True, wait_for_everyone=lambda: None, unwrap_model=lambda model: model)
        super().__init__(accelerator=accelerator, model=SimpleNamespace(), model_version=0, rollout_worker=worker, weight_transfer=transfer)
        self.state = SimpleNamespace(global_step=0)
        self.args = SimpleNamespace(**{"temperature": 1.0, "max_staleness": 1, **args})
        self.callbacks: list[Any] = []
        self._streaming_iter = lambda: iter(())

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def _sync_weight(self) -> None:
        asynchronous.AsyncGRPOTrainer._sync_weight_merged(self, 0.0)

    def step(self) -> None:
        self.state.global_step += 1
        for callback in self.callbacks:
            callback.on_step_end(self.args, self.state, None)


class Asynchronous(Served):
    def begun(self, script: Any, prompts: list[str], **args: Any) -> tuple[Worker, Trainer, Any]:
        worker = Worker(self.groups(script), prompts, EACH, ahead=1, waiting=8)
        transfer = Transfer()
        trainer = Trainer(worker, worker.weights(transfer), **args)
        worker.bind(trainer)
        asynchronous._TrainBeginCallback(trainer).on_train_begin(None, None, None)
        self.assertEqual(transfer.asked, ["init_weight_transfer", "pause", "send_weights", "resume"])
        metrics: Any = defaultdict(list)
        source = asynchronous.RolloutQueueDataset(
            worker.rollout_buffer, lambda: trainer.model_version, worker.check_health, 300.0, metrics, max_staleness=trainer.args.max_staleness, poll_interval_s=0.1
        )
        return worker, trainer, SimpleNamespace(source=source, metrics=metrics)

    def test_uneven_groups_reach_its_loss_with_the_baseline_of_those_with_a_number(self) -> None:
        script = Script(FATES)
        worker, trainer, queue = self.begun(script, ["w5 w6"])
        collate = asynchronous.DataCollatorForRollout(pad_token_id=0, metrics=queue.metrics)
        batch = collate([next(iter(asynchronous.FixedCountBatcher(queue.source, 1, 4)))])
        numbers = [1.0, 0.75, 0.25]
        worth = {rollout: (own - statistics.fmean(numbers)) / (statistics.stdev(numbers) + 1e-4) for rollout, own in script.rewards.items()}
        expected = Counter(
            (token, round(logprob, 4), round(worth[rollout], 4))
            for call in self.engine.calls
            if (rollout := call.user.split("/")[0]) in worth
            for token, logprob in zip(call.token_ids, call.logprobs, strict=True)
        )
        labels = batch["shift_labels"][0].tolist()
        terms = [batch[key][0].tolist() for key in ("token_index", "old_log_probs", "advantages")]
        self.assertEqual(Counter((labels[at], round(logprob, 4), round(own, 4)) for at, logprob, own in zip(*terms, strict=True)), expected)
        self.assertEqual((queue.metrics["sample/staleness_max"], len(collate.groups_trained)), ([0.0] * 4, 1))
        self.assertEqual(self.outcomes(worker.groups)["claimed"], 1)
        trainer.step()
        self.assertEqual(self.outcomes(worker.groups), Counter(done=1))
        with self.assertRaisesRegex(RuntimeError, "no more prompts"):
            next(iter(queue.source))
        worker.stop()

    def noted(self, worker: Worker) -> list[Any]:
        said: list[Any] = []
        dispose = worker.groups.run.dispose

        def noting(rows: Any) -> Any:
            own = list(rows)
            said.extend(own)
            return dispose(own)

        worker.groups.run.dispose = noting  # type: ignore[method-assign]
        return said

    def test_what_trl_drops_for_its_age_is_said_to_be_stale(self) -> None:
        worker, trainer, queue = self.begun(Script(("number",) * EACH), ["w5 w6"])
        said = self.noted(worker)
        taken = iter(queue.source)
        next(taken)
        self.assertEqual(queue.metrics["sample/staleness_max"], [0.0])
        trainer._sync_weight()
        trainer._sync_weight()
        with self.assertRaisesRegex(RuntimeError, "no more prompts"):
            next(taken)
        self.assertEqual(len(queue.metrics["sample/dropped_stale_total"]), EACH - 1)
        trainer.step()
        self.assertEqual(Counter((each["outcome"], each["step"]) for each in said), Counter({("used", 1): 1, ("stale", 1): EACH - 1}))
        worker.stop()
        self.assertEqual(self.outcomes(worker.groups), Counter(done=1))

    def test_what_the_trainer_never_took_is_trained_by_nobody(self) -> None:
        worker, trainer, queue = self.begun(Script(("number",) * EACH), ["w5 w6"])
        said = self.noted(worker)
        next(iter(queue.source))
        worker.stop()
        self.assertEqual(Counter(each["outcome"] for each in said), Counter(used=1, skipped=EACH - 1))
        self.assertEqual(self.outcomes(worker.groups), Counter(done=1))

    def test_a_harness_that_breaks_the_protocol_stops_the_training_and_weights_that_nobody_announced_are_refused(self) -> None:
        worker, trainer, queue = self.begun(lambda opened: {"end": "completed"}, ["w5 w6"])
        with self.assertRaisesRegex(RuntimeError, "the rollouts failed"):
            next(iter(queue.source))
        with self.assertRaisesRegex(Refused, "weights"):
            worker.update_model_version(2)
        worker.stop()
        with self.assertRaisesRegex(Refused, "weights"):
            worker.bind(Trainer(worker, Transfer()))


if __name__ == "__main__":
    unittest.main()
