"""A real `paddock serve` with tiny_engine.py behind it, and a harness whose rollouts end in all the ways there are: what tests of adapters stand on.

Truth is what the engine noted of each call and what the harness answered.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import unittest
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddock_rl import Paddock
from paddock_rl.groups import Groups, OpenRollout
from tiny_engine import TinyEngine

ROOT = Path(__file__).resolve().parents[2]
EACH = 5
FATES = ("number", "two rows", "null", "budget", "infra")
"""By place: two rollouts with a number (one of them of two rows), one that nobody can judge, one that its budget cut, one whose machine is gone."""


class Script:
    """A harness of two calls with a tool's answer between them; what becomes of a rollout is its place's fate. The place is its slot, unless `place` says another."""

    def __init__(self, fates: tuple[str, ...] = FATES, place: Callable[[OpenRollout], int] = lambda opened: opened.slot) -> None:
        self.fates = fates
        self.place = place
        self.rewards: dict[str, float] = {}

    def __call__(self, opened: OpenRollout) -> Any:
        place = self.place(opened)
        fate = self.fates[place]
        if fate == "infra":
            raise ConnectionError("the machine is gone")
        messages = [{"role": "user", "content": opened.prompt}]
        messages.append({"role": "assistant", "content": say(opened, messages, 0)})
        messages.append({"role": "tool", "content": f"w10 w11 w{5 + place}"})
        say(opened, messages[-1:] if fate == "two rows" else messages, 1)
        if fate == "null":
            return None
        reward = self.rewards[opened.rollout_id] = 1.0 - place / 4
        return {"end": "budget", "verdict": {"source": "harness", "reward": reward}} if fate == "budget" else reward


def say(opened: OpenRollout, messages: list[dict[str, str]], call: int) -> str:
    body = {"model": "any", "messages": messages, "user": f"{opened.rollout_id}/{call}"}
    headers = {"authorization": f"Bearer {opened.key}", "content-type": "application/json"}
    asked = urllib.request.Request(f"{opened.base_url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def grpo(numbers: list[float], own: float) -> float:
    return (own - statistics.fmean(numbers)) / (statistics.stdev(numbers) + 1e-6)


class Served(unittest.TestCase):
    with_engine = True
    """Whether Paddock is started with the engine; else a run names its own."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        cls.engine = TinyEngine()
        data = f"{cls.directory.name}/data"
        arguments = ["serve", "--json", "--data", data, "--port", "0", "--control-port", "0"]
        arguments += ["--engine", cls.engine.url if cls.with_engine else "none"]
        cls.serving = subprocess.Popen([str(ROOT / "paddock"), *arguments], stdout=subprocess.PIPE, text=True)
        assert cls.serving.stdout is not None
        ready = json.loads(cls.serving.stdout.readline())
        os.environ["PADDOCK_CONTROL_URL"] = ready["control"]
        os.environ["PADDOCK_CONTROL_TOKEN"] = Path(data, "control-token").read_text().strip()
        cls.paddock = Paddock(ready["control"])

    @classmethod
    def tearDownClass(cls) -> None:
        cls.serving.send_signal(signal.SIGINT)
        cls.serving.communicate()
        cls.engine.close()
        cls.directory.cleanup()

    def groups(self, script: Script, **more: Any) -> Groups:
        groups = Groups(self.paddock.run(purpose="train"), harness=script, **more)
        self.addCleanup(groups.close)
        # The next run may announce weights then.
        self.addCleanup(groups.run.finish)
        return groups

    def spoken(self, rollout: str) -> tuple[list[int], list[int], list[float]]:
        """Ids, mask and logprobs of a rollout of two calls in one thread, from the engine's own notes."""
        calls = {call.user: call for call in self.engine.calls}
        first, second = (calls[f"{rollout}/{index}"] for index in range(2))
        context = second.prompt_ids[len(first.prompt_ids) + len(first.token_ids) :]
        ids = second.prompt_ids + second.token_ids
        mask = [0] * len(first.prompt_ids) + [1] * len(first.token_ids) + [0] * len(context) + [1] * len(second.token_ids)
        logprobs = [0.0] * len(first.prompt_ids) + first.logprobs + [0.0] * len(context) + second.logprobs
        return ids, mask, logprobs

    def outcomes(self, groups: Groups) -> Counter[str]:
        """What became of rows, as Paddock has it: by the run's own counts once all is said."""
        return Counter({name: count for name, count in groups.run.state()["counts"].items() if count})
