"""TRL's own `GRPOTrainer` on a real `paddock serve`, with tiny_engine.py, which has the trainer's weights.

Truth is what the engine noted of each call and what the harness answered for each rollout. What TRL computes its loss from is
looked at where it computes it.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "test/real")]

import torch  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from paddock_rl import Paddock, Run, advantages  # noqa: E402
from paddock_rl.trl import MultiRow, OpenRollout, Refused, Rollouts, paddock_reward, rollout_samples  # noqa: E402
from tiny_engine import TinyEngine, logprobs_of, new_model, new_tokenizer  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from transformers.utils import logging  # noqa: E402
from trl.experimental.async_grpo import async_grpo_trainer as asynchronous  # noqa: E402

torch.set_num_threads(2)
logging.disable_progress_bar()
EACH = 4
docker = shutil.which("docker") is not None and subprocess.run(["docker", "version"], capture_output=True).returncode == 0
PROMPTS = ("w5 w6", "w9 w8 w7")


class Watched(trl.GRPOTrainer):
    """Notes what each loss is computed from."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.trained: list[dict[str, Any]] = []

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
        for place in range(len(inputs["prompt_ids"])):
            prompt = inputs["prompt_ids"][place][inputs["prompt_mask"][place].bool()].tolist()
            there = inputs["completion_mask"][place].bool()
            completion = inputs["completion_ids"][place][there].tolist()
            mask = inputs["tool_mask"][place][there].tolist()
            own = logprobs_of(model, prompt + completion)[len(prompt) - 1 :]
            told = inputs["sampling_per_token_logps"][place][there]
            self.trained.append(
                {
                    "step": self.state.global_step,
                    "ids": (tuple(prompt), tuple(completion), tuple(mask)),
                    "advantage": inputs["advantages"][place].item(),
                    "apart": max(
                        [abs(a - b) for a, b, bit in zip(own.tolist(), told.tolist(), mask, strict=True) if bit], default=0
                    ),
                }
            )
        return super().compute_loss(model, inputs, *args, **more)


class Script:
    """The harness: two calls with a tool's answer between them. What becomes of a rollout is laid down by prompt and slot."""

    def __init__(self, outcomes: dict[tuple[str, int, int], str]) -> None:
        self.outcomes = outcomes
        self.rewards: dict[str, float | None] = {}
        self.opened: list[OpenRollout] = []

    def __call__(self, opened: OpenRollout) -> float | None:
        self.opened.append(opened)
        self.rewards[opened.rollout_id] = None
        outcome = self.outcomes.get((opened.prompt, opened.slot, opened.attempt), "number")
        if outcome == "infra at once":
            raise ConnectionError("the machine is gone")
        messages = [{"role": "user", "content": opened.prompt}]
        messages.append({"role": "assistant", "content": say(opened, messages, 0)})
        if outcome == "infra":
            raise ConnectionError("the machine is gone")
        asked = messages[-1]["content"]
        if outcome == "two rows":
            messages = []
        messages.append({"role": "tool", "content": f"w10 w11 w{5 + opened.slot}"})
        answer = say(opened, messages, 1)
        if outcome == "null":
            return None
        reward = len(set((asked + " " + answer).split())) / 10 + opened.slot
        self.rewards[opened.rollout_id] = reward
        return reward


def say(opened: OpenRollout, messages: list[dict[str, str]], call: int) -> str:
    body = {"model": "any", "messages": messages, "user": f"{opened.rollout_id}/{call}"}
    headers = {"authorization": f"Bearer {opened.key}", "content-type": "application/json"}
    asked = urllib.request.Request(f"{opened.base_url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


class Noting(Rollouts):
    """Keeps what it gave to TRL."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.given: list[dict[str, list[Any]]] = []

    def __call__(self, prompts: Any, trainer: Any) -> dict[str, list[Any]]:
        found = super().__call__(prompts, trainer)
        self.given.append({key: list(value) for key, value in found.items()})
        return found


class TrlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        cls.engine = TinyEngine()
        data = f"{cls.directory.name}/data"
        arguments = ["serve", "--json", "--data", data, "--port", "0", "--control-port", "0", "--engine", cls.engine.url]
        cls.serving = subprocess.Popen([str(ROOT / "paddock"), *arguments], stdout=subprocess.PIPE, text=True)
        assert cls.serving.stdout is not None
        ready = json.loads(cls.serving.stdout.readline())
        cls.control = ready["control"]
        cls.token = Path(data, "control-token").read_text().strip()
        cls.paddock = Paddock(cls.control, cls.token)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.serving.send_signal(signal.SIGINT)
        cls.serving.communicate()
        cls.engine.close()
        cls.directory.cleanup()

    def setUp(self) -> None:
        self.engine.load(new_model().state_dict())

    @contextmanager
    def opened(self, name: str, *, ends: bool = True, **asked: Any) -> Iterator[Run]:
        """A run, which gives its engine to the next one at its end."""
        with self.paddock.run(name, purpose="train", **asked) as run:
            try:
                yield run
            finally:
                if ends:
                    run.finish()

    def settings(self, **more: Any) -> Any:
        """Two groups of four to a step, which is two batches of four."""
        known = {"per_device_train_batch_size": EACH, "gradient_accumulation_steps": 2, "num_generations": EACH, "max_steps": 3}
        rest = {"learning_rate": 3e-2, "lr_scheduler_type": "constant", "report_to": [], "save_strategy": "no", "beta": 0.0}
        cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "disable_tqdm": True, "logging_strategy": "no"}
        here = {"output_dir": f"{self.directory.name}/out", "shuffle_dataset": False, "seed": 0, "max_completion_length": 32}
        return trl.GRPOConfig(**{**known, **rest, **cpu, **here, **more})

    def trainer(self, rollout_func: Any, **more: Any) -> Watched:
        return Watched(
            model=new_model(),
            reward_funcs=paddock_reward,
            args=self.settings(**more),
            train_dataset=Dataset.from_dict({"prompt": list(PROMPTS) * 4}),
            eval_dataset=Dataset.from_dict({"prompt": list(PROMPTS)}),
            processing_class=new_tokenizer(),
            rollout_func=rollout_func,
        )

    def train(
        self,
        run: Run,
        script: Script | None,
        settings: dict[str, Any] | None = None,
        *,
        also: TrainerCallback | None = None,
        resume: str | None = None,
        **more: Any,
    ) -> tuple[Watched, Noting]:
        rollouts = Noting(run, harness=script, move_weights=lambda it, _: self.engine.load(it.model.state_dict()), **more)
        trainer = self.trainer(rollouts, **(settings or {}))
        rollouts.bind(trainer)
        if also is not None:
            trainer.add_callback(also)
        trainer.train(resume_from_checkpoint=resume)
        return trainer, rollouts

    def spoken(self, rollout: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Prompt, completion and mask of a rollout of two calls, from the engine's own notes."""
        calls = {call.user: call for call in self.engine.calls}
        first, second = (calls[f"{rollout}/{index}"] for index in range(2))
        self.assertEqual([first.temperature, second.temperature], [1, 1])
        whole = first.prompt_ids + first.token_ids
        self.assertEqual(second.prompt_ids[: len(whole)], whole)
        between = second.prompt_ids[len(whole) :]
        mask = [1] * len(first.token_ids) + [0] * len(between) + [1] * len(second.token_ids)
        return tuple(first.prompt_ids), tuple(first.token_ids + between + second.token_ids), tuple(mask)

    def assert_same(self, found: list[tuple[Any, float]], expected: list[tuple[Any, Any]]) -> None:
        """In any order: what was sampled to the bit, its advantage as far as 32 bits tell."""
        found, expected = sorted(found), sorted(expected)
        self.assertEqual([sampled for sampled, _ in found], [sampled for sampled, _ in expected])
        for (_, advantage), (_, own) in zip(found, expected, strict=True):
            self.assertAlmostEqual(advantage, own, 4)

    def rounds(self, script: Script) -> list[dict[str, Any]]:
        """All rounds as the route tells them in JSON, read without the client."""
        found = []
        for group in dict.fromkeys(opened.group_id for opened in script.opened):
            headers = {"authorization": f"Bearer {self.token}", "accept": "application/json"}
            url = f"{self.control}/rl/v1/groups/{group}/rounds/0/rows"
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                found.append(json.load(answer))
        return found

    def test_what_is_trained_is_what_was_sampled(self) -> None:
        """A group of uneven outcome: two numbers, a null, an infra. The other: three numbers, and one that never called."""
        script = Script({(PROMPTS[0], 2, 0): "null", (PROMPTS[0], 3, 0): "infra", (PROMPTS[1], 1, 0): "infra at once"})
        with self.opened("uneven") as run:
            disposed = noted(run)
            trainer, _ = self.train(run, script)
            self.assertEqual(run.state()["counts"], {**dict.fromkeys(run.state()["counts"], 0), "done": 6})
        self.assertEqual(trainer.state.global_step, 3)
        self.assertEqual(len(script.opened), 3 * 2 * EACH)

        expected: list[tuple[Any, float]] = []
        nothing = 0
        for round_ in self.rounds(script):
            numbers = {member["rollout_id"]: script.rewards[member["rollout_id"]] for member in round_["members"]}
            self.assertEqual([member["reward"] for member in round_["members"]], list(numbers.values()))
            known = [number for number in numbers.values() if number is not None]
            mean, deviation = statistics.mean(known), statistics.stdev(known)
            for rollout, number in numbers.items():
                if number is None:
                    nothing += 1
                    continue
                expected.append((self.spoken(rollout), (number - mean) / (deviation + 1e-4)))
        self.assert_same([(each["ids"], each["advantage"]) for each in trainer.trained if any(each["ids"][2])], expected)
        self.assertEqual(nothing, 9)
        idle = [each for each in trainer.trained if not any(each["ids"][2])]
        self.assertEqual([each["advantage"] for each in idle], [0.0] * nothing)
        # The weights that sampled are those that train: recorded logprobs are the trainer's own, at each step.
        self.assertEqual({each["step"] for each in trainer.trained}, {0, 1, 2})
        self.assertLess(max(each["apart"] for each in trainer.trained), 1e-4)

        rows = [row["row_id"] for round_ in self.rounds(script) for row in round_["rows"]]
        self.assertEqual(Counter(each["row"] for each in disposed), Counter(rows))
        by_row = {each["row"]: each for each in disposed}
        worth = dict(expected)
        for round_ in self.rounds(script):
            for row in round_["rows"]:
                said, number = by_row[row["row_id"]], script.rewards[row["rollout_id"]]
                self.assertEqual(said["outcome"], "skipped" if number is None else "used")
                self.assertEqual(said.get("reward_used"), number)
                if number is not None:
                    self.assertAlmostEqual(said["advantage"], worth[self.spoken(row["rollout_id"])], 4)
        before, after = new_model().state_dict(), trainer.model.state_dict()
        moved = max(float((after[name] - before[name]).abs().max()) for name in before)
        self.assertGreater(moved, 1e-2)

    def test_a_mean_in_the_place_of_a_null_leaves_the_mean_as_it_is(self) -> None:
        script = Script({(PROMPTS[0], 2, 0): "null"})
        with self.opened("mean") as run:
            trainer, rollouts = self.train(run, script, {"max_steps": 1}, null="masked_mean")
        (given,) = rollouts.given
        known = [number for place, number in enumerate(given["paddock_number"][:EACH]) if place != 2]
        mean = statistics.mean(known)
        self.assertAlmostEqual(given["paddock_number"][2], mean)
        deviation = statistics.stdev([*known, mean])
        by_ids = {each["ids"]: each["advantage"] for each in trainer.trained}
        for place in range(EACH):
            ids = tuple(tuple(given[key][place]) for key in ("prompt_ids", "completion_ids", "env_mask"))
            self.assertAlmostEqual(by_ids[ids], (given["paddock_number"][place] - mean) / (deviation + 1e-4), 4)
            self.assertEqual(any(ids[2]), place != 2)

    def test_what_came_to_nothing_is_tried_again_first(self) -> None:
        script = Script({(PROMPTS[0], 2, 0): "null", (PROMPTS[0], 3, 0): "infra", (PROMPTS[1], 1, 0): "infra at once"})
        with self.opened("spare") as run:
            disposed = noted(run)
            trainer, rollouts = self.train(run, script, {"max_steps": 1}, spare=2)
        self.assertEqual(len(script.opened), 2 * EACH + 3)
        self.assertEqual(sum(opened.attempt for opened in script.opened), 2)
        (given,) = rollouts.given
        self.assertNotIn(None, given["paddock_number"])
        self.assertEqual(len([each for each in trainer.trained if any(each["ids"][2])]), 2 * EACH)
        rows = [row["row_id"] for round_ in self.rounds(script) for row in round_["rows"]]
        self.assertEqual(Counter(each["row"] for each in disposed), Counter(rows))
        self.assertEqual(Counter(each["outcome"] for each in disposed), {"used": 2 * EACH, "skipped": 1})

    def test_several_rows_are_refused_or_counted(self) -> None:
        outcomes = {(PROMPTS[1], 2, 0): "two rows"}
        with self.opened("refused") as run, self.assertRaisesRegex(MultiRow, "multi_row"):
            self.train(run, Script(outcomes), {"max_steps": 1})
        script = Script(outcomes)
        with self.opened("main-chain") as run:
            disposed = noted(run)
            _, rollouts = self.train(run, script, {"max_steps": 1}, several="main_chain")
        calls = {call.user: len(call.token_ids) for call in self.engine.calls}
        (forked,) = [opened.rollout_id for opened in script.opened if outcomes.get((opened.prompt, opened.slot, 0))]
        self.assertEqual(rollouts.lost_tokens, min(calls[f"{forked}/0"], calls[f"{forked}/1"]))
        self.assertEqual([each["reason"] for each in disposed if each["outcome"] == "skipped"], ["main_chain"])

    def test_a_group_without_any_number_trains_nothing(self) -> None:
        script = Script({(PROMPTS[0], slot, 0): "infra" for slot in range(EACH)})
        with self.opened("failed") as run:
            disposed = noted(run)
            trainer, rollouts = self.train(run, script, {"max_steps": 1})
            self.assertEqual(run.state()["counts"]["failed"], 1)
        self.assertEqual(rollouts.given[0]["paddock_number"][:EACH], [None] * EACH)
        self.assertEqual(Counter(any(each["ids"][2]) for each in trainer.trained), {True: EACH, False: EACH})
        self.assertEqual(len(disposed), EACH)

    def test_a_batch_that_is_used_over_several_steps_is_disposed_of_when_it_is_through(self) -> None:
        script = Script({})
        with self.opened("passes") as run:
            disposed = noted(run)
            settings = {"max_steps": 3, "steps_per_generation": 4, "num_iterations": 2, "gradient_accumulation_steps": 2}
            self.train(run, script, settings)
        # Four steps were asked of one generation, and there were three: its second pass was not through.
        self.assertEqual(Counter((each["step"], each["use"]) for each in disposed), {(2, 0): 16})
        self.assertEqual(len({each["row"] for each in disposed}), 16)

    @unittest.skipUnless(docker, "no Docker daemon answers, and rollouts of Paddock have boxes")
    def test_paddock_does_the_rollouts_itself(self) -> None:
        with self.opened("inside", tasks=str(ROOT / "examples/tasks/terminal")) as run:
            disposed = noted(run)
            settings = {"max_steps": 1, "num_generations": 2, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 1}
            more = {"task": {PROMPTS[0]: "log-forensics"}.get, "group": {"horizon": 2}}
            trainer, rollouts = self.train(run, None, settings, **more)
        (given,) = rollouts.given
        self.assertEqual(given["paddock_number"], [0.0, 0.0])
        sampled = {tuple(call.prompt_ids + call.token_ids) for call in self.engine.calls}
        for each in trainer.trained:
            prompt, completion, mask = each["ids"]
            self.assertIn(prompt + completion, sampled)
            self.assertTrue(any(mask))
            self.assertLess(each["apart"], 1e-4)
        self.assertEqual([each["outcome"] for each in disposed], ["no_signal"] * 2)

    def test_a_checkpoint_is_gone_on_from_and_what_came_behind_it_is_undone(self) -> None:
        class Crash(TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.global_step == 2:
                    raise KeyboardInterrupt

        settings = {"save_strategy": "steps", "save_steps": 1}
        with self.opened("resumed", ends=False) as run, self.assertRaises(KeyboardInterrupt):
            self.train(run, Script({}), settings, also=Crash())
        with self.opened("resumed") as run:
            disposed = noted(run)
            trainer, _ = self.train(run, Script({}), settings, resume=f"{self.directory.name}/out/checkpoint-1")
            self.assertEqual(run.incarnation, 2)
        self.assertEqual([each["step"] for each in trainer.trained], [1] * 8 + [2] * 8)
        self.assertLess(max(each["apart"] for each in trainer.trained), 1e-4)
        # What the lost step had trained comes again, and TRL has no place for rollouts of another process.
        self.assertEqual(
            Counter((each["step"], each["outcome"]) for each in disposed), {(1, "stale"): 8, (2, "used"): 8, (3, "used"): 8}
        )

    def test_trl_ignores_returned_logprobs_without_vllm(self) -> None:
        """That TRL does not notice is TRL's own behaviour, and why weights are announced and rows of others refused."""
        with self.opened("ignored") as run:
            _, rollouts = self.train(run, Script({}), {"max_steps": 1})
        (given,) = rollouts.given
        wrong = {**given, "logprobs": [[value - 2 for value in row] for row in given["logprobs"]]}
        after = []
        for output in (given, wrong):
            trainer = self.trainer(
                lambda prompts, it, output=output: {key: list(value) for key, value in output.items()}, max_steps=1
            )
            trainer.train()
            after.append(trainer.model.state_dict())
        self.assertTrue(all(torch.equal(after[0][name], after[1][name]) for name in after[0]))

    def test_samples_go_through_trls_asynchronous_queue_and_collator(self) -> None:
        """Its trainer itself needs a GPU. What its loss would take is compared with the engine's notes, term by term."""
        outcomes = {(PROMPTS[0], 1, 0): "two rows", (PROMPTS[0], 2, 0): "null"}
        script = Script(outcomes)
        with self.opened("asynchronous") as run:
            self.train(run, script, {"max_steps": 1}, several="main_chain")
        group = self.paddock.rows(script.opened[0].group_id)
        computed = advantages(group, "trl")
        waiting: Any = queue.Queue()
        samples = rollout_samples(group, computed, 5)
        for sample in samples:
            waiting.put(sample)
        metrics: Any = defaultdict(list)
        source = asynchronous.RolloutQueueDataset(waiting, lambda: 2, lambda stale_after_s: None, 1.0, metrics)
        collate = asynchronous.DataCollatorForRollout(pad_token_id=0, metrics=metrics)
        batch = collate([next(iter(asynchronous.FixedCountBatcher(source, 1, len(samples))))])

        calls = [call for call in self.engine.calls if computed.by_rollout.get(call.user.split("/")[0]) is not None]
        expected = [
            ((token, logprob), computed.by_rollout[call.user.split("/")[0]])
            for call in calls
            for token, logprob in zip(call.token_ids, call.logprobs, strict=True)
        ]
        terms = [batch[key][0].tolist() for key in ("token_index", "old_log_probs", "advantages")]
        labels = batch["shift_labels"][0].tolist()
        self.assert_same([((labels[at], logprob), worth) for at, logprob, worth in zip(*terms, strict=True)], expected)
        self.assertEqual((len(samples), collate.groups_trained), (4, {5}))
        self.assertEqual(metrics["sample/staleness_max"], [2.0] * 4)

    def test_settings_under_which_it_would_train_on_something_else_are_refused(self) -> None:
        with self.opened("settings") as run:
            for code, settings in {
                "temperature": {"temperature": 0.5},
                "mask_truncated_completions": {"mask_truncated_completions": True},
                "batch": {"gradient_accumulation_steps": 3, "steps_per_generation": 2},
                "evaluation": {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": EACH},
            }.items():
                with self.subTest(code), self.assertRaises(Refused) as caught:
                    self.train(run, Script({}), settings)
                self.assertEqual(caught.exception.code, code)


def noted(run: Run) -> list[dict[str, Any]]:
    """What is disposed of from here on."""
    found: list[dict[str, Any]] = []
    dispose = run.dispose

    def noting(dispositions: Any) -> Any:
        own = list(dispositions)
        found.extend(own)
        done = dispose(own)
        assert (done.accepted, done.repeated) == (len(own), 0)
        return done

    run.dispose = noting  # type: ignore[method-assign]
    return found


if __name__ == "__main__":
    unittest.main()
