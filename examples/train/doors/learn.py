"""The model learns `doors`: `learn.py --base DIRECTORY --weights DIRECTORY --out FILE`, beside vLLM and `paddock serve`.

vLLM serves `--weights`, which begin as those of `--base` (made by tiny.py). All that trains was sampled by it, through Paddock, by
harness.py; after each step it loads the weights anew. `--out` gets rewards of held-out clues before and after, and of each step.
`--url` is Paddock's control listener, PADDOCK_CONTROL_TOKEN its token. `--control` shuffles rewards within their groups: nothing to learn.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import torch
from paddock_rl import Group, Paddock, Run
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import loop  # noqa: E402
from play import Play, Players, open_doors  # noqa: E402
from world import held_out, training  # noqa: E402

RELOAD = [{"path": "/collective_rpc", "body": {"method": "reload_weights"}}]


@dataclass(frozen=True)
class Subject:
    """What is learned. Tasks are anything that has a `name` and an `instruction`, and that `play` understands."""

    name: str
    training: Callable[[int], Sequence[Any]]
    """The tasks of a seed, in the order in which they train."""
    held_out: Callable[[], Sequence[Any]]
    play: Play
    at_once: int = 8


DOORS = Subject("doors", training, held_out, open_doors)


def task_of(task: Any) -> dict[str, str]:
    return {"name": task.name, "instruction": task.instruction}


def examine(run: Run, name: str, asked: Sequence[Any], players: Players) -> list[float]:
    """Rewards of the held-out tasks, in their order, one attempt each, by the weights that are live."""
    opened = run.eval([task_of(task) for task in asked], split="test", eval_id=name)
    for asked_for, task in zip(asked, opened["tasks"], strict=True):
        players.group(task["group_id"], asked_for, 1)
    while (found := run.eval_state(name, wait_s=20))["state"] == "running":
        players.failed()
    if found["result"]["mixed"] or found["state"] != "done":
        raise RuntimeError(f"evaluation {name} is {found['state']}, and its weights changed: {found['result']['mixed']}")
    rewards = [member["reward"] for task in found["tasks"] for member in task["members"]]
    if None in rewards:
        raise RuntimeError(f"{rewards.count(None)} of {len(rewards)} rollouts have no reward")
    return [float(reward) for reward in rewards]


def shuffled(group: Group, random: Random) -> Group:
    """Any member may have got any reward of its group: what was done and what it was worth have nothing to do with each other."""
    rewards = [member.reward for member in group.members]
    random.shuffle(rewards)
    members = [replace(member, reward=reward) for member, reward in zip(group.members, rewards, strict=True)]
    by_rollout = {member.rollout_id: member.reward for member in members}
    return replace(group, members=members, rows=[replace(row, reward=by_rollout[row.rollout_id]) for row in group.rows])


def mcnemar(before: list[float], after: list[float]) -> float:
    """Two-sided exact p of as many changes for the better and for the worse, were both as likely."""
    better = sum(one < two for one, two in zip(before, after, strict=True))
    worse = sum(one > two for one, two in zip(before, after, strict=True))
    changed = better + worse
    return min(1.0, 2 * sum(comb(changed, at) for at in range(min(better, worse) + 1)) / 2**changed)


def policy(args: argparse.Namespace) -> Any:
    """The model, whose last `top_layers` alone train; with 0 all of it does."""
    model = AutoModelForCausalLM.from_pretrained(args.base, dtype=torch.float32)
    if args.top_layers:
        model.requires_grad_(False)
        model.model.layers[-args.top_layers :].requires_grad_(True)
    return model


def learn(paddock: Paddock, args: argparse.Namespace, subject: Subject) -> dict[str, Any]:
    """Held-out tasks, training, held-out tasks: what came of it."""
    torch.manual_seed(args.seed)
    model = policy(args)
    args.reference = AutoModelForCausalLM.from_pretrained(args.base, dtype=torch.float32) if args.kl else None
    tasks, unseen = subject.training(args.seed), subject.held_out()
    staleness = {"max": args.lag, "mode": "gate"}
    players = Players(paddock, subject.play, source=subject.name, seed=args.seed, at_once=subject.at_once)
    with paddock.run(args.name, purpose="train", harness=subject.name, groups_per_step=args.groups, staleness=staleness) as run:

        def ask(name: str, number: int) -> None:
            task = tasks[number % len(tasks)]
            run.submit({"group_id": name, "task": task_of(task), "n": args.n})
            players.group(name, task, args.n)

        run.attach()
        run.policy(0, "live", step=None, requests=RELOAD)
        before = examine(run, f"{args.name}-before", unseen, players)
        print(f"before: {mean(before):.3f} of {len(before)} held-out tasks", flush=True)
        watched = Watched(run, players, Random(args.seed) if args.control else None)
        loop.train(model, watched, ask, args)  # type: ignore[arg-type]
        after = examine(run, f"{args.name}-after", unseen, players)
        players.close()
        run.finish()
        found = {"before": mean(before), "after": mean(after), "p": mcnemar(before, after), "tasks": len(before)}
        return {**found, "steps": run.recorded_metrics()["metrics"], "trained": watched.trained}


class Watched:
    """A run that notes what was trained; as a control, its groups come with shuffled rewards. Everything else is the run's."""

    def __init__(self, run: Run, players: Players, shuffling: Random | None) -> None:
        self._run = run
        self._players = players
        self._shuffling = shuffling
        self.trained: list[list[Any]] = []
        """[step, call, trained tokens of it]"""

    def claim(self, *args: Any, **more: Any) -> list[Group]:
        self._players.failed()
        groups = self._run.claim(*args, **more)
        return groups if self._shuffling is None else [shuffled(group, self._shuffling) for group in groups]

    def dispose_group(self, group: Group, step: int, **more: Any) -> Any:
        for row in group.rows:
            turns = zip(row.node_ids, row.turn_spans, strict=True)
            self.trained += [[step, call, sum(row.loss_mask[start:end])] for call, (start, end) in turns]
        return self._run.dispose_group(group, step, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)


def main(subject: Subject, **others: Any) -> None:
    """`others`: defaults of this subject's own."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    known = {"seed": 1, "steps": 50, "groups": 4, "n": 8, "lag": 1, "save_every": 10, "most_tokens": 4096}
    known |= {"lr": 4e-4, "decay": 0.8, "max_norm": 0.1, "kl": 0.15, "clip_low": 0.2, "clip_high": 0.28, "most_kl": 1e-3}
    known |= {"lease_s": 600.0, "mode": "drain", "top_layers": 0}
    for name, default in {**known, "name": subject.name, **others}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=" ")
    for name, says in {"base": "where it starts", "weights": "what vLLM serves", "out": "a file for what came of it"}.items():
        parser.add_argument(f"--{name}", required=True, help=says)
    parser.add_argument("--control", action="store_true", help="shuffle rewards within groups")
    parser.add_argument("--url", required=True, help="Paddock's control listener")
    args = parser.parse_args()
    args.push, args.requests, args.lora = None, json.dumps(RELOAD), 0
    paddock = Paddock(args.url)
    began = time.monotonic()
    shutil.copytree(args.base, args.weights, dirs_exist_ok=True)
    with tempfile.TemporaryDirectory() as args.save:
        found = learn(paddock, args, subject)
    found["seconds"] = round(time.monotonic() - began)
    Path(args.out).write_text(json.dumps(found))
    said = ("before", "after", "p", "tasks", "seconds")
    print(json.dumps({name: found[name] for name in said}), flush=True)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main(DOORS)
