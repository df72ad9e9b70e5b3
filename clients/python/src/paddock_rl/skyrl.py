"""SkyRL trains on rollouts of your harness: its generator.

    generator = Generator(Groups(Paddock(url).run("skyrl", purpose="train"), harness=solve, spare=2))
    trainer = RayPPOTrainer(..., generator=generator)          # BasePPOExp.get_generator returns it

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `trajectory_ids[].instance_id` | SkyRL, from `rewards` | the mean of the others and a mask of zeros, or refused | refused, the main chain, or step-wise rows with the reward on the last |

Written against skyrl 0.4.0 and its classes. There

- `skyrl/train/generators/base.py` 17-90: what `generate` takes and gives back, in the order of `prompts`;
- `skyrl/train/utils/trainer_utils.py` 673, `validate_generator_output`: what is checked of it;
- `skyrl/train/trainer.py` 1168-1204: with `generator.step_wise_trajectories` advantages are of the last row of a trajectory and go to all its rows.

SkyRL has no word for null. The mean in its place leaves the mean of the group as it is and makes the deviation a little smaller.

test/real/trainers_test.py puts it through them. Nothing of SkyRL is imported here, and of its own types only those that it gave are given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from .convert._rows import Null
from .convert.skyrl import COLUMNS, columns_of
from .groups import Asked, Groups, MultiRow, NoNumber, OpenRollout, Refused, Steps, places, require_numbers
from .rows import Group

__all__ = ["Generator", "Groups", "MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "Several"]

Several = Literal["refuse", "main_chain", "step_wise"]
"""A rollout of several rows: refused, the row that trains most, or all of them, with `generator.step_wise_trajectories`."""

class Generator:
    """SkyRL's `GeneratorInterface`. `pad_token_id` stands for a rollout that has no row.

    Rows are said to be `used` when the next step asks, or by `steps.done()`; `steps.checkpoint(step)` is yours. `method` is the preset whose advantages
    dispositions tell. The fully asynchronous trainer moves weights while rollouts go on: `announce=False`, and a hook of yours says so, and what became of rows.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        null: Null = "raise",
        several: Several = "refuse",
        pad_token_id: int = 0,
        announce: bool = True,
        method: str | None = None,
    ) -> None:
        if null not in get_args(Null) or several not in get_args(Several):
            raise Refused("choice", f"null is one of {get_args(Null)}, and several one of {get_args(Several)}.")
        self.groups = groups
        self.steps = Steps(groups.run, announce=announce, method=method)
        self.lost_tokens = 0
        """Trained tokens that several="main_chain" left out so far."""
        self._null: Null = null
        self._several: Several = several
        self._pad = pad_token_id

    async def generate(self, input_batch: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """SkyRL's: one entry for each prompt in its order; with `step_wise` one for each row."""
        return await asyncio.get_running_loop().run_in_executor(None, self._generate, input_batch)

    def _generate(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        about, ids = batch["batch_metadata"], batch["trajectory_ids"]
        if about is None or ids is None:
            raise Refused("no_ids", "which prompts are one group, and of which step? Fix: a trainer that gives trajectory_ids and batch_metadata.")
        if about.training_phase != "train":
            raise Refused("evaluation", "rollouts of a training run would be measured. Fix: trainer.eval_interval=-1; evaluate with run.eval.")
        step = int(about.global_step)
        # SkyRL's first step is 1 (trainer.py 306).
        self.steps.at(step, step - 1, step - 1 if step > 1 else None)
        spans = _spans([one.instance_id for one in ids])
        settled = self.groups.settled([Asked(batch["prompts"][start], end - start) for start, end in spans], step)
        out: dict[str, Any] = {name: [] for name in (*COLUMNS, "trajectory_ids")}
        for group, (start, end) in zip(settled, spans, strict=True):
            self._add(out, group, ids[start:end], step, (batch.get("sampling_params") or {}).get("temperature"))
        out["rollout_metrics"] = {"paddock/lost_tokens": self.lost_tokens}
        if self._several != "step_wise":
            out["is_last_step"] = None
        return out

    def _add(self, out: dict[str, Any], group: Group | None, ids: Sequence[Any], step: int, temperature: float | None) -> None:
        """Adds the rows of a group, for trajectories of these ids."""
        found = places(group, len(ids), "all" if self._several == "step_wise" else self._several, temperature)
        assert group is not None
        if self._null == "raise":
            require_numbers(found)
        for trajectory, place in zip(ids, found, strict=True):
            columns = columns_of(place.rows, place.number, place.masked) if place.rows else self._empty(place.number)
            for name, values in columns.items():
                out[name] += values
            out["trajectory_ids"] += [trajectory] * len(columns["rewards"])
            self.lost_tokens += place.lost
        self.steps.gave(step, group, [row.row_id for place in found if not place.masked for row in place.rows])

    def _empty(self, reward: float) -> dict[str, list[Any]]:
        """A rollout that never called the model: a token of padding that nothing trains."""
        values = ([self._pad], [self._pad], reward, [0], "stop", [0.0], True)
        return {name: [value] for name, value in zip(COLUMNS, values, strict=True)}


def _spans(names: Sequence[str]) -> list[tuple[int, int]]:
    """Where each group begins and ends."""
    found: list[tuple[int, int]] = []
    for place, name in enumerate(names):
        if found and names[place - 1] == name:
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    if len({names[start] for start, _ in found}) < len(found):
        raise Refused("groups", "prompts of one instance are not side by side, and SkyRL would compare them.")
    return found
