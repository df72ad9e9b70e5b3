"""Rollouts of `doors`: the harness runs as a program of its own for each, and what it printed is judged here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from paddock_rl import Paddock

from world import Clue, behind_doors

HARNESS = Path(__file__).with_name("harness.py")


class Players:
    """Plays the rollouts of groups as they are asked for, a few at a time. The same seed puts the same numbers behind doors."""

    def __init__(self, paddock: Paddock, *, seed: int, at_once: int = 8) -> None:
        self._paddock = paddock
        self._seed = seed
        self._threads = ThreadPoolExecutor(at_once)
        self._played: list[Future[None]] = []

    def group(self, group_id: str, clue: Clue, n: int) -> None:
        """Opens and plays `n` rollouts of a group that was submitted."""
        self.failed()
        self._played += [self._threads.submit(self._play, group_id, clue, slot) for slot in range(n)]

    def failed(self) -> None:
        """Raises what went wrong in a rollout: with a rollout missing its group would never settle."""
        done = [future for future in self._played if future.done()]
        self._played = [future for future in self._played if not future.done()]
        for future in done:
            future.result()

    def close(self) -> None:
        self._threads.shutdown()
        self.failed()

    def _play(self, group_id: str, clue: Clue, slot: int) -> None:
        """A harness that fails is told, not scored: its rollout has no reward, and whoever asks next for failures gets its words."""
        doors = behind_doors(Random(f"{self._seed} {group_id} {slot}"))
        opened = self._paddock.open_rollout(group_id, idempotency_key=f"{group_id}-{slot}")
        try:
            said = run_harness({"instruction": clue.instruction, "doors": doors}, opened)
        except HarnessFailed:
            failed = {"source": "doors", "reward": None, "reason": "the harness failed"}
            self._paddock.end_rollout(opened["rollout_id"], "harness_crash", verdict=failed)
            raise
        reward = float(said.strip() == doors[clue.right_door])
        self._paddock.end_rollout(opened["rollout_id"], verdict={"source": "doors", "reward": reward})


class HarnessFailed(RuntimeError):
    """With what the harness said of it."""


def run_harness(task: dict[str, Any], opened: dict[str, Any]) -> str:
    """What the harness printed. All that it knows of the model is where it is."""
    model = {"OPENAI_BASE_URL": opened["base_url"], "OPENAI_API_KEY": opened["key"], "OPENAI_MODEL": "policy"}
    ran = subprocess.run(
        [sys.executable, "-I", "-S", HARNESS], input=json.dumps(task), env={**os.environ, **model}, capture_output=True, text=True
    )
    if ran.returncode != 0:
        raise HarnessFailed(f"harness.py ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout
