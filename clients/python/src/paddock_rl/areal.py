"""AReaL trains on rollouts of your harness: its rollout workflow.

    workflow = Workflow(Groups(Paddock(url).run("areal", purpose="train"), harness=solve, spare=2), n=config.gconfig.n_samples)
    trainer.train(workflow=workflow)          # not as eval_workflow: nothing tells an episode of the two apart

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| the `n` episodes that are begun of one `data` | AReaL, from `rewards` | None: the episode is rejected, and in no mean | refused, or the main chain |

Written against areal 1.0.4. There

- `areal/api/workflow_api.py` 16: an episode answers a dict of tensors, or None where it is rejected;
- `areal/infra/remote_inf_engine.py` 71-118, `GroupedRolloutWorkflow`: begins all episodes of a prompt at once with one `data`, and goes on without those that are None;
- `areal/workflow/rlvr.py` 170-177: keys and types of the tensors, here with a first dimension of 1. A row of its own counts as a member of the group, so a rollout has one;
- `areal/trainer/rl_trainer.py` 754-775: weights are moved while rollouts are paused, and `get_version` of the engine is the trainer's step.

test/real/trainers_test.py puts it through them. Nothing of AReaL is imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_args

from .convert._rows import Several
from .convert.areal import tensors_of
from .groups import Asked, Groups, MultiRow, NoNumber, OpenRollout, Place, Refused, Steps, places

__all__ = ["Groups", "MultiRow", "NoNumber", "OpenRollout", "Refused", "Workflow"]

_TYPES = {"input_ids": "int32", "loss_mask": "int32", "logprobs": "float32", "versions": "int32", "attention_mask": "bool", "rewards": "float32"}


@dataclass
class _Begun:
    """The episodes of one prompt: which have begun, and a name of its own."""

    next: int = 0
    name: object = field(default_factory=object)


class Workflow:
    """AReaL's `RolloutWorkflow`, in one process. `prompt` is the column of `data` that holds the prompt, `temperature` that of `gconfig`, `pad_token_id` stands for
    a rollout that has no row.

    Rows are said to be `used` when the next version asks, and the last ones with `steps.finish()`; `steps.checkpoint(version)` is yours. With
    `rollout.max_head_offpolicyness` above 0 weights move while rollouts go on: `announce=False`, and a hook of yours says so, and what became of rows.
    """

    def __init__(
        self,
        groups: Groups,
        n: int,
        *,
        prompt: str = "messages",
        several: Several = "refuse",
        temperature: float = 1.0,
        pad_token_id: int = 0,
        announce: bool = True,
        method: str | None = None,
    ) -> None:
        if several not in get_args(Several):
            raise Refused("choice", f"several is one of {get_args(Several)}.")
        self.groups = groups
        self.steps = Steps(groups.run, announce=announce, method=method)
        self.lost_tokens = 0
        """Trained tokens that several="main_chain" left out so far."""
        self._n = n
        self._prompt = prompt
        self._several: Several = several
        self._temperature = temperature
        self._pad = pad_token_id
        self._begun: dict[int, _Begun] = {}

    async def arun_episode(self, engine: Any, data: Mapping[str, Any]) -> dict[str, Any] | None:
        """AReaL's: one of the `n` episodes of a prompt, once its whole group is done; None where it has no number."""
        name, place = self._next(data)
        version = int(engine.get_version())
        await asyncio.get_running_loop().run_in_executor(None, self.steps.at, version, version, version - 1 if version > 0 else None)
        group = await self.groups.member(name, Asked(data[self._prompt], self._n), version)
        try:
            found = places(group, self._n, self._several, self._temperature)
        except NoNumber:
            return None
        if place == 0 and group is not None:
            self.lost_tokens += sum(each.lost for each in found)
            self.steps.gave(version, group, [row.row_id for each in found if not each.masked for row in each.rows])
        return None if found[place].masked else self._tensors(found[place])

    def _next(self, data: Mapping[str, Any]) -> tuple[object, int]:
        """Which group an episode is of, and its place there: all are begun before another prompt has the same `data`."""
        begun = self._begun.setdefault(id(data), _Begun())
        place, begun.next = begun.next, begun.next + 1
        if begun.next == self._n:
            del self._begun[id(data)]
        return begun.name, place

    def _tensors(self, place: Place) -> dict[str, Any]:
        torch = import_module("torch")
        made = tensors_of(place.rows[0], place.number) if place.rows else self._empty(place.number)
        return {name: torch.tensor(value, dtype=getattr(torch, _TYPES[name])) for name, value in made.items()}

    def _empty(self, reward: float) -> dict[str, Sequence[Any]]:
        """A rollout that never called the model: two tokens of padding that nothing trains."""
        nothing = {"loss_mask": [[0, 0]], "logprobs": [[0.0, 0.0]], "versions": [[-1, -1]]}
        return {"input_ids": [[self._pad, self._pad]], "attention_mask": [[True, True]], **nothing, "rewards": [reward]}
