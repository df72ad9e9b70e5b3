"""`paddock_rl.trl_harness` on a real `paddock serve`: TRL's own `HarnessRolloutWorker` spawns its process, drives the sessions there, scores the groups and queues
samples, which TRL's own queue, batcher and collator read. Truth is what the engine noted of each call.
"""

from __future__ import annotations

import os
import statistics
import sys
import unittest
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]
warnings.filterwarnings("ignore")

from paddock_rl import Paddock  # noqa: E402
from paddock_rl.groups import Groups, OpenRollout  # noqa: E402
from paddock_rl.trl_harness import Factory, Refused, Sessions  # noqa: E402
from served import EACH, FATES, Script, Served, say  # noqa: E402
from tiny_engine import EOS, new_tokenizer  # noqa: E402
from trl.experimental.async_grpo import async_grpo_trainer as asynchronous  # noqa: E402
from trl_async_test import Trainer, Transfer  # noqa: E402

NUMBERS = {0: 1.0, 1: 0.75, 3: 0.25}
"""By slot, what `served.Script` says of its fates."""
RUN = "harness"


def grpo(numbers: list[float], own: float, deviation: Any, eps: float) -> float:
    return (own - statistics.fmean(numbers)) / (deviation(numbers) + eps)


def work(opened: OpenRollout) -> Any:
    """The first group meets its fates; the others go on until their calls are refused."""
    if opened.group_id.endswith("-0"):
        return Script(FATES)(opened)
    while True:
        say(opened, [{"role": "user", "content": opened.prompt}], 0)


def groups() -> Groups:
    """What the worker's process opens: it is spawned, so by its name."""
    return Groups(Paddock(os.environ["PADDOCK_CONTROL_URL"]).open_run(RUN), harness=work)


class Harness(Served):
    def begun(self) -> tuple[Sessions, Any, Trainer]:
        run = self.paddock.run(RUN, purpose="train")
        self.addCleanup(run.finish)
        sessions = Sessions(run, groups, EACH)
        tokenizer = new_tokenizer()
        # Only what TRL samples itself is parsed by it.
        tokenizer.response_template = {}
        worker = sessions.worker(
            dataset=[{"prompt": "w5 w6"}], processing_class=tokenizer, eos_token_ids=[EOS], temperature=1.0, max_inflight_tasks=EACH, vllm_server_url=self.engine.url
        )
        trainer = Trainer(worker, sessions.weights(Transfer()), max_staleness=4)
        sessions.bind(trainer)
        asynchronous._TrainBeginCallback(trainer).on_train_begin(None, None, None)
        self.addCleanup(worker.stop)
        return sessions, worker, trainer

    def test_its_worker_trains_exactly_what_was_recorded_and_lets_go_of_what_runs_when_it_stops(self) -> None:
        sessions, worker, trainer = self.begun()
        run, said = sessions._run, []
        dispose = run.dispose
        run.dispose = lambda rows: said.extend(rows) or dispose(rows)  # type: ignore[func-returns-value, method-assign]
        samples: list[Any] = []
        note = worker.rollout_buffer._note
        worker.rollout_buffer._note = lambda sample: (samples.append((sample.input_ids.tolist(), sample.completion_mask.tolist())), note(sample))
        metrics: Any = defaultdict(list)
        source = asynchronous.RolloutQueueDataset(
            worker.rollout_buffer, lambda: trainer.model_version, worker.check_health, 300.0, metrics, max_staleness=4, poll_interval_s=0.1
        )
        collate = asynchronous.DataCollatorForRollout(pad_token_id=0, metrics=metrics)
        batch = collate([next(iter(asynchronous.FixedCountBatcher(source, 1, 4)))])
        trainer.step()
        group = self.paddock.rows(f"{RUN}-{run.incarnation}-0")
        slots = {member.rollout_id: member.slot for member in group.members}
        worth = {slot: grpo(list(NUMBERS.values()), own, statistics.pstdev, 1e-8) for slot, own in NUMBERS.items()}
        expected = Counter(
            (token, round(logprob, 4), round(worth[slot], 4))
            for call in self.engine.calls
            if (slot := slots.get(call.user.split("/")[0])) in worth
            for token, logprob in zip(call.token_ids, call.logprobs, strict=True)
        )
        labels = batch["shift_labels"][0].tolist()
        terms = [batch[key][0].tolist() for key in ("token_index", "old_log_probs", "advantages")]
        self.assertEqual(Counter((labels[at], round(logprob, 4), round(own, 4)) for at, logprob, own in zip(*terms, strict=True)), expected)
        # The context too is the engine's: a sample holds the prompt ids of its calls as they were.
        rows = [row for row in group.rows if slots[row.rollout_id] in worth]
        self.assertEqual(sorted(samples), sorted((list(row.token_ids), list(row.loss_mask)) for row in rows))
        self.assertEqual(
            sorted((each["row"], each["outcome"], each["reward_used"], each["step"]) for each in said),
            sorted((row.row_id, "used", NUMBERS[slots[row.rollout_id]], 1) for row in rows),
        )
        # Of the others the worker's process has said that nobody trains them: the whole group is done.
        self.assertEqual(run.state()["counts"]["claimed"], 0)
        before = len(self.engine.calls)
        while len(self.engine.calls) < before + EACH:
            worker.check_health(300.0)
        worker.stop()
        # The sessions were closed, so their group was given up: it would go on forever otherwise.
        state = "running"
        while state == "running":
            state = self.paddock.ask("GET", f"/rl/v1/groups/{RUN}-{run.incarnation}-1")["rounds"][-1]["state"]
        self.assertIn(state, ("settled", "failed"))

    def test_settings_under_which_it_would_wait_forever_or_train_on_something_else_are_refused(self) -> None:
        run = self.paddock.run("harness-refused", purpose="collect")
        self.addCleanup(run.finish)
        self.addCleanup(self.paddock.run(RUN, purpose="train").finish)
        sessions = Sessions(run, groups, EACH)
        for code, given in (("inflight", {"max_inflight_tasks": EACH - 1}), ("capture", {"lossless_capture": False}), ("capture", {"harness_adapter": object()})):
            with self.assertRaisesRegex(Refused, code):
                sessions.worker(**given)
        with self.assertRaisesRegex(Refused, "sampling"):
            Factory(groups, "harness-refused", 1, EACH)({"temperature": 1.0, "top_p": 0.9})
        with self.assertRaisesRegex(Refused, "run"):
            Factory(groups, "harness-refused", 1, EACH)({"temperature": 1.0})
        with self.assertRaisesRegex(Refused, "weights"):
            sessions.bind(Trainer(None, Transfer()))


if __name__ == "__main__":
    unittest.main()
