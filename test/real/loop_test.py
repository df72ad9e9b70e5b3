"""`examples/train/loop.py` against a Paddock that is played here: it samples from the weights that the loop has pushed.

The model is a Llama of 2 layers, random at the start. A task is a clue; half of the answers are right for it. What is checked is what
a trainer has to get right: it learns, at every lag; its loss equals one that is worked out here token by token; rows whose logprobs,
mask or versions are wrong stop it in the first step.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "clients/python"), str(ROOT / "examples/train")]

from paddock_rl import MismatchTooLarge, Paddock, decode  # noqa: E402
from tests import encoder  # noqa: E402
from tests.stand_in import Asked, Reply, StandIn, refuses, says  # noqa: E402

spec = importlib.util.spec_from_file_location("loop", ROOT / "examples/train/loop.py")
assert spec is not None and spec.loader is not None
loop = importlib.util.module_from_spec(spec)
sys.modules["loop"] = loop
spec.loader.exec_module(loop)

VOCABULARY, CLUES, ANSWER = 32, 4, 2
torch.set_num_threads(2)
logging.disable_progress_bar()


def new_model() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
    )
    return LlamaForCausalLM(config)


@torch.no_grad()
def merged(adapter: Path) -> Any:
    """The model with an adapter of PEFT's format put into its weights."""
    about = json.loads((adapter / "adapter_config.json").read_text())
    tensors, model = load_file(adapter / "adapter_model.safetensors"), new_model()
    for name, b in tensors.items():
        if name.endswith(".lora_B.weight"):
            at = name.removesuffix(".lora_B.weight")
            weight = model.get_submodule(at.removeprefix("base_model.model.")).weight
            weight += about["lora_alpha"] / about["r"] * b @ tensors[f"{at}.lora_A.weight"]
    return model


def reward_of(clue: int, answer: list[int]) -> float:
    """The share of answer tokens in the clue's quarter of the vocabulary: a quarter by chance."""
    return sum(token % CLUES == clue for token in answer) / len(answer)


class Played(StandIn):
    """The routes that the loop uses. Groups are sampled when they are asked for, under the weights that are live then."""

    def __init__(self, weights: Path, damage: str = "none") -> None:
        super().__init__()
        self.weights, self.damage = weights, damage
        self.version = -1
        self.model: Any = None
        self.settled: list[dict[str, Any]] = []
        self.claimed: dict[str, dict[str, Any]] = {}
        self.dispositions: list[dict[str, Any]] = []
        self.metrics: list[dict[str, Any]] = []
        self.checkpoints: list[int] = []
        self.adapters: list[str] = []
        self.state = threading.Lock()
        self.on("POST /rl/v1/runs", says({"run_id": "run"}, 201))
        run = "/rl/v1/runs/run"
        attached = {"incarnation": 1, "resume_step": None, "undone": {}, "again": [], "cursor": None}
        self.on(f"POST {run}/attach", says(attached))
        self.on(f"GET {run}", self.counts)
        for name in ("groups", "claims", "policy", "dispositions", "metrics", "checkpoint"):
            self.on(f"POST {run}/{name}", getattr(self, f"take_{name}"))

    def counts(self, asked: Asked) -> Reply:
        counts = {"running": 0, "settled_unclaimed": len(self.settled), "claimed": len(self.claimed), "done": 0, "failed": 0}
        return says({"run_id": "run", "closed": False, "counts": counts})

    def take_policy(self, asked: Asked) -> Reply:
        if asked.body["phase"] == "live":
            adapter = asked.body.get("adapter")
            self.model = self.load() if adapter is None else merged(Path(adapter["path"]))
            self.adapters += [] if adapter is None else [adapter["name"]]
            self.version = asked.body["version"]
        return says({})

    def load(self) -> Any:
        return AutoModelForCausalLM.from_pretrained(self.weights, dtype=torch.float32)

    def take_groups(self, asked: Asked) -> Reply:
        for group in asked.body["groups"]:
            self.settled.append(self.sample(group["group_id"], int(group["task"].removeprefix("clue")), group["n"]))
        return says({"accepted": [], "capacity": None}, 202)

    def sample(self, name: str, clue: int, n: int) -> dict[str, Any]:
        """n rollouts of two turns; every third rollout has a second row, and the last member's infrastructure has failed."""
        members, rows = [], []
        for slot in range(n):
            rollout = f"{name}-r{slot}"
            if slot == n - 1:
                members.append(encoder.member(rollout, None, slot, out="infra", end="infra"))
                continue
            made = [self.say(f"{rollout}/{index}", clue, index) for index in range(2 if slot % 3 == 0 else 1)]
            reward = sum(reward for _, reward in made) / len(made)
            members.append(encoder.member(rollout, reward, slot))
            for index, (row, _) in enumerate(made):
                row.update(rollout_id=rollout, reward=reward, rows_of_rollout=len(made), is_last=index == len(made) - 1)
                rows.append(row)
        return encoder.round_of(members, rows, group_id=name)

    def say(self, name: str, clue: int, index: int) -> tuple[dict[str, Any], float]:
        turns = [(3, ANSWER), (2, ANSWER)]
        ids: list[int] = []
        logprobs: list[float | None] = []
        answer: list[int] = []
        for context, sampled in turns:
            ids += [clue, index, clue][:context]
            logprobs += [0.0] * context
            for _ in range(sampled):
                with torch.no_grad():
                    found = torch.log_softmax(self.model(torch.tensor([ids])).logits[0, -1], dim=-1)
                token = int(torch.multinomial(found.exp(), 1))
                ids.append(token)
                logprobs.append(float(found[token]))
                answer.append(token)
        row = encoder.row(name, "", 0.0, turns, logprob_kind="raw")
        low = self.version + (1 if self.damage == "versions" else 0)
        row["versions"] = [[start, end, low, low] for start, end in row["turn_spans"]]
        row["arrays"].update(token_ids=ids, logprobs=logprobs)
        if self.damage == "shifted":
            row["arrays"]["logprobs"] = [0.0, *logprobs[:-1]]
        if self.damage == "tool results":
            row["arrays"]["loss_mask"][5:7] = [1, 1]
        return row, reward_of(clue, answer)

    def take_claims(self, asked: Asked) -> Reply:
        claims = []
        while self.settled and len(claims) < asked.body["max_groups"]:
            header = self.settled.pop(0)
            self.claimed[header["group_id"]] = header
            self.on(f"GET /rl/v1/groups/{header['group_id']}/rounds/0/rows", self.rows)
            claims.append({"claim_id": header["group_id"], "group_id": header["group_id"], "round": 0, "lease_s": 600})
        return says({"claims": claims})

    def rows(self, asked: Asked) -> Reply:
        header = self.claimed[asked.path.split("/")[4]]
        return says(encoder.encode(header), **{"content-type": "application/vnd.paddock.rows"})

    def take_dispositions(self, asked: Asked) -> Reply:
        self.dispositions += asked.body["dispositions"]
        said = {each["row"] for each in self.dispositions}
        done = [name for name, header in self.claimed.items() if all(row["row_id"] in said for row in header["rows"])]
        for name in done:
            del self.claimed[name]
        return says({"accepted": len(asked.body["dispositions"]), "repeated": 0, "claims_done": done})

    def take_metrics(self, asked: Asked) -> Reply:
        self.metrics.append(asked.body)
        return says({})

    def take_checkpoint(self, asked: Asked) -> Reply:
        self.checkpoints.append(asked.body["step"])
        return says({})


def asking(run: Any, tasks: list[str], args: argparse.Namespace) -> Any:
    return lambda name, at: run.submit({"group_id": name, "task": tasks[at % len(tasks)], "n": args.n})


def arguments(save: str, **more: Any) -> argparse.Namespace:
    known = {"save": save, "mode": "drain", "steps": 40, "groups": 4, "n": 9, "lag": 1, "save_every": 10, "most_tokens": 200}
    rest = {"lora": 0, "weights": "", "requests": "[]", "kl": 0.0, "reference": None, "lease_s": 600.0, "lr": 1e-2, "decay": 0.0, "clip_low": 0.2, "clip_high": 0.28, "max_norm": 1.0, "most_kl": 1e-3, "push": None}
    return argparse.Namespace(**{**known, **rest, **more})


class Loop(unittest.TestCase):
    def train(self, damage: str = "none", **more: Any) -> Played:
        with tempfile.TemporaryDirectory() as directory:
            paddock = Played(Path(directory) / "weights", damage)
            self.addCleanup(paddock.close)
            with Paddock(paddock.url, "t").run("run") as run:
                args = arguments(directory, **more)
                loop.train(new_model(), run, asking(run, [f"clue{clue}" for clue in range(CLUES)], args), args)
            return paddock

    def test_learns_at_every_lag_and_says_what_became_of_each_row(self) -> None:
        for lag in (0, 2, 4):
            with self.subTest(lag=lag):
                paddock = self.train(lag=lag)
                rewards = [metrics["values"]["reward"] for metrics in paddock.metrics]
                first, last = sum(rewards[:3]) / 3, sum(rewards[-5:]) / 5
                self.assertLess(first, 0.4)
                self.assertGreater(last, 0.6)
                self.assertEqual([metrics["step"] for metrics in paddock.metrics], list(range(40)))
                self.assertEqual(max(metrics["values"]["age"] for metrics in paddock.metrics), lag)
                self.assertEqual(paddock.checkpoints, [9, 19, 29, 39])
                rows = [each["row"] for each in paddock.dispositions]
                self.assertEqual(len(rows), len(set(rows)))
                self.assertEqual((paddock.settled, paddock.claimed), ([], {}))
                self.assertLessEqual({each["outcome"] for each in paddock.dispositions}, {"used", "no_signal"})
                # Rows of the live weights are compared before each update; float32 on both sides.
                self.assertLess(max(metrics["mismatch"]["p99"] for metrics in paddock.metrics), 1e-3)

    def test_shifted_logprobs_and_trained_tool_results_stop_it_in_the_first_step(self) -> None:
        for damage in ("shifted", "tool results"):
            with self.subTest(damage=damage), self.assertRaises(MismatchTooLarge):
                self.train(damage)

    def test_versions_that_are_off_by_one_stop_it_as_soon_as_there_are_two(self) -> None:
        with self.assertRaises(MismatchTooLarge):
            self.train("versions", steps=2)

    def test_its_loss_is_the_clipped_objective_token_by_token(self) -> None:
        model = new_model()
        torch.manual_seed(1)
        header = encoder.simple([1.0, 0.0, 0.5])
        header["rows"][1] = encoder.row("row1", "r1", 0.0, [(4, 5), (1, 3), (2, 2)])
        for row in header["rows"]:
            row["arrays"]["token_ids"] = torch.randint(VOCABULARY, (row["n_tokens"],)).tolist()
            row["temperatures"] = [[start, end, 0.7] for start, end in row["turn_spans"]]
            mask = row["arrays"]["loss_mask"]
            row["arrays"]["logprobs"] = [-3.5 + float(torch.randn(1)) * 0.4 if bit else None for bit in mask]
        rows = decode(encoder.encode(header)).rows
        samples = [loop.Sample(row, worth, 0.1) for row, worth in zip(rows, (1.0, -1.5, 0.3), strict=True)]
        found, clipped = loop.clipped_loss(model, samples, 0.2, 0.28)
        wanted, cut = torch.tensor(0.0), 0
        for sample in samples:
            ids = list(sample.row.token_ids)
            for at, bit in enumerate(sample.row.loss_mask):
                if not bit:
                    continue
                logits = model(torch.tensor([ids[:at]])).logits[0, -1] / 0.7
                ratio = torch.exp(torch.log_softmax(logits, -1)[ids[at]] - sample.row.logprobs[at])
                bounded = min(max(float(ratio), 0.8), 1.28)
                keep = float(ratio) * sample.advantage <= bounded * sample.advantage
                wanted = wanted - 0.1 * (ratio * sample.advantage if keep else torch.tensor(bounded * sample.advantage))
                cut += not keep
        self.assertGreater(cut, 0)
        self.assertEqual(clipped, cut)
        self.assertAlmostEqual(float(found), float(wanted), places=5)
        own = torch.autograd.grad(found, list(model.parameters()), retain_graph=True)
        other = torch.autograd.grad(wanted, list(model.parameters()))
        for one, two in zip(own, other, strict=True):
            torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-3)

    def test_distance_from_the_reference_is_none_at_first_and_holds_on_to_it(self) -> None:
        model, reference = new_model(), new_model()
        with torch.no_grad():
            header = encoder.simple([1.0, 0.0])
            for row in header["rows"]:
                row["arrays"]["token_ids"] = torch.randint(VOCABULARY, (row["n_tokens"],)).tolist()
            rows = decode(encoder.encode(header)).rows
            samples = [loop.Sample(row, 0.0, 1.0) for row in rows]
            self.assertEqual(float(loop.clipped_loss(model, samples, 0.2, 0.28, 0.5, reference)[0]), 0.0)
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
            near, far = (float(loop.clipped_loss(model, samples, 0.2, 0.28, kl, reference)[0]) for kl in (0.0, 0.5))
        self.assertEqual(near, 0.0)
        self.assertGreater(far, 0.01)

    def test_goes_on_from_its_checkpoint(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            paddock = Played(Path(directory) / "weights")
            self.addCleanup(paddock.close)
            live = []
            for steps in (10, 10, 20):
                with Paddock(paddock.url, "t").run("run") as run:
                    args = arguments(directory, steps=steps)
                    loop.train(new_model(), run, asking(run, ["clue0"], args), args)
                live.append(paddock.model.state_dict())
            torch.testing.assert_close(live[1], live[0], rtol=0, atol=0)
            asked = paddock.bodies("POST /rl/v1/runs/run/attach")
            self.assertEqual([body["resume_step"] for body in asked], [None, 9, 9])
            self.assertEqual([metrics["step"] for metrics in paddock.metrics], list(range(20)))

    def test_what_would_become_too_old_is_trained_before_the_push(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            paddock = Played(Path(directory) / "weights")
            self.addCleanup(paddock.close)
            pausing: list[int] = []

            def gate(asked: Asked) -> Reply:
                if asked.body["phase"] == "pausing":
                    pausing.append(asked.body["version"])
                    if pausing.count(2) == 1 and asked.body["version"] == 2:
                        return refuses(409, "GATE", blocking=[header["group_id"] for header in paddock.settled])
                return paddock.take_policy(asked)

            paddock.on("POST /rl/v1/runs/run/policy", gate)
            with Paddock(paddock.url, "t").run("run") as run:
                args = arguments(directory, steps=3)
                loop.train(new_model(), run, asking(run, ["clue0"], args), args)
            self.assertEqual(pausing, [0, 1, 2, 2, 3])
            extra = [each["step"] for each in paddock.dispositions if each["row"].startswith("run-1-4-")]
            self.assertEqual(set(extra), {1})
            self.assertEqual([metrics["step"] for metrics in paddock.metrics], [0, 1, 2])

    def test_trains_an_adapter_and_goes_on_from_its_checkpoint_with_the_same_one(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            paddock = Played(Path(directory) / "weights")
            self.addCleanup(paddock.close)
            for steps in (2, 4):
                with Paddock(paddock.url, "t").run("run") as run:
                    args, model = arguments(directory, steps=steps, lora=8, lr=5e-2), new_model()
                    loop.lora.put_on(model, args.lora)
                    loop.train(model, run, asking(run, [f"clue{clue}" for clue in range(CLUES)], args), args)
            # What was sampled under an adapter has the logprobs that the trainer computes for it, in float32.
            self.assertLess(max(metrics["mismatch"]["p99"] for metrics in paddock.metrics), 1e-3)
            self.assertEqual([metrics["step"] for metrics in paddock.metrics], [0, 1, 2, 3])
            self.assertEqual(len(paddock.adapters), 6)
            self.assertEqual(paddock.adapters[2], paddock.adapters[3])
            self.assertEqual(len(set(paddock.adapters)), 5)
            self.assertEqual({body["phase"] for body in paddock.bodies("POST /rl/v1/runs/run/policy")}, {"live"})
            base = new_model().state_dict()
            kept = {name: value for name, value in model.state_dict().items() if name.endswith(".original")}
            self.assertGreater(len(kept), 0)
            for name, value in kept.items():
                torch.testing.assert_close(value, base[name.replace(".parametrizations", "").removesuffix(".original")], rtol=0, atol=0)

    def test_its_command_line_is_that_of_the_guide(self) -> None:
        guide = (ROOT / "docs/guides/train.md").read_text()
        command = re.search(r"^PYTHONPATH=\S+ python3 (examples/train/loop\.py .*)$", guide, re.MULTILINE)
        assert command is not None
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            paddock = Played(place / "weights")
            self.addCleanup(paddock.close)
            new_model().save_pretrained(place / "model")
            for clue in range(CLUES):
                (place / "tasks" / f"clue{clue}").mkdir(parents=True)
            here = {"--model": str(place / "model"), "--tasks": str(place / "tasks"), "--save": str(place / "out"), "--steps": "2"}
            words = shlex.split(command[1])
            words = [here.get(before, word) for before, word in zip(["", *words], words)]
            more = ["--url", paddock.url, "--run", "run", "--n", "4"]
            env = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src"), "PADDOCK_CONTROL_TOKEN": "t"}
            done = subprocess.run([sys.executable, "-B", *words, *more], cwd=ROOT, env=env, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([metrics["step"] for metrics in paddock.metrics], [0, 1])
            self.assertEqual(len(paddock.adapters), 3)
            self.assertEqual(paddock.bodies("POST /rl/v1/runs")[0]["tasks"], str(place / "tasks"))

    def test_it_has_two_hundred_lines_at_most(self) -> None:
        self.assertLessEqual(len((ROOT / "examples/train/loop.py").read_text().splitlines()), 200)


if __name__ == "__main__":
    unittest.main()
