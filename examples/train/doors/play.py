"""Rollouts that are played here: the harness runs as a program of its own for each, and what it printed is judged by the task's rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from paddock_rl import Paddock

from world import Clue, behind_doors

HARNESS = [sys.executable, "-I", "-S", Path(__file__).with_name("harness.py")]

Play = Callable[[Any, Random, dict[str, Any]], float]
"""Plays one rollout, `play(task, random, opened)`, and says its reward."""


class Players:
    """Plays the rollouts of groups as they are asked for, a few at a time. The same seed gives `play` the same random numbers."""

    def __init__(self, paddock: Paddock, play: Play, *, source: str, seed: int, at_once: int) -> None:
        self._paddock = paddock
        self._play_one = play
        self._source = source
        self._seed = seed
        self._threads = ThreadPoolExecutor(at_once)
        self._played: list[Future[None]] = []

    def group(self, group_id: str, task: Any, n: int) -> None:
        """Opens and plays `n` rollouts of a group that was submitted."""
        self.failed()
        self._played += [self._threads.submit(self._play, group_id, task, slot) for slot in range(n)]

    def failed(self) -> None:
        """Raises what went wrong in a rollout: with a rollout missing its group would never settle."""
        done = [future for future in self._played if future.done()]
        self._played = [future for future in self._played if not future.done()]
        for future in done:
            future.result()

    def close(self) -> None:
        self._threads.shutdown()
        self.failed()

    def _play(self, group_id: str, task: Any, slot: int) -> None:
        """A harness that fails is told, not scored: its rollout has no reward, and whoever asks next for failures gets its words."""
        opened = self._paddock.open_rollout(group_id, idempotency_key=f"{group_id}-{slot}")
        try:
            reward = self._play_one(task, Random(f"{self._seed} {group_id} {slot}"), opened)
        except HarnessFailed:
            failed = {"source": self._source, "reward": None, "reason": "the harness failed"}
            self._paddock.end_rollout(opened["rollout_id"], "harness_crash", verdict=failed)
            raise
        self._paddock.end_rollout(opened["rollout_id"], verdict={"source": self._source, "reward": reward})


class HarnessFailed(RuntimeError):
    """With what the harness said of it."""


def run_harness(command: Sequence[Any], given: str, opened: dict[str, Any]) -> str:
    """What the harness printed. All that it knows of the model is where it is."""
    model = {"OPENAI_BASE_URL": opened["base_url"], "OPENAI_API_KEY": opened["key"], "OPENAI_MODEL": "policy"}
    ran = subprocess.run(command, input=given, env={**os.environ, **model}, capture_output=True, text=True)
    if ran.returncode != 0:
        raise HarnessFailed(f"{Path(command[-1]).name} ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout


def open_doors(clue: Clue, random: Random, opened: dict[str, Any]) -> float:
    """Whether the number behind the right door was said."""
    doors = behind_doors(random)
    said = run_harness(HARNESS, json.dumps({"instruction": clue.instruction, "doors": doors}), opened)
    return float(said.strip() == doors[clue.right_door])
