"""slime, and vime and miles after it, trains on rollouts of your harness: its rollout function, its `generate`, its reward normalisation.

    # my_project/rollouts.py
    rollouts = Rollouts(Groups(Paddock(url).run("slime", purpose="train"), harness=solve, spare=2))
    generate_rollout = rollouts.generate_rollout       # --rollout-function-path my_project.rollouts.generate_rollout
    normalise = rewards                                # --custom-reward-post-process-path my_project.rollouts.normalise

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `group_index` | `rewards` here; without it slime, from the order of samples | `remove_sample`, and `rewards` leaves it out; or the mean of the others; or refused | a list of samples with one `rollout_id`, with `rewards` only |

Written against slime at 624b824a8 (0.3.1), which is in no package index: its source was read, it was not run. There

- `slime/utils/types.py` 94-146: the fields of `Sample`; `slime/rollout/base_types.py` 8-11: what the function returns;
- `slime/ray/rollout.py` 583-606: it is called as `fn(args, rollout_id, data_source, evaluation=)`, and what fans out has `rollout_id`s;
- `slime/ray/rollout.py` 608-633, `_post_process_rewards`: rewards are normalised in rows of `n_samples_per_prompt`, and **over the whole batch as one group** where
  a rollout has several samples; `remove_sample` (680) masks, and stays in the mean. `rewards` has neither flaw.

Nothing of slime is imported before a batch is given back.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Sequence
from copy import copy
from importlib import import_module
from typing import Any, Literal, get_args

from .convert.slime import sample_of
from .groups import Asked, Groups, MultiRow, NoNumber, OpenRollout, Place, Refused, Steps, places, require_numbers
from .rows import Group

__all__ = ["Groups", "MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "Rollouts", "Several", "rewards"]

Null = Literal["left_out", "masked_mean", "raise"]
"""A rollout that has no number after all attempts: out of mean and deviation, which needs `rewards`; the mean of the group's numbers and a
mask of zeros; or `NoNumber`. It is never 0."""

Several = Literal["refuse", "main_chain", "fan_out"]
"""A rollout of several rows: refused, the row that trains most, or a sample each, which needs `rewards`."""

_EPS = 1e-6
_NORMALISED = ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline")
_BY_DEVIATION = ("grpo", "gspo", "cispo")


def rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """slime's `--custom-reward-post-process-path`: raw rewards, and those less the mean of their group, by its deviation with
    `grpo_std_normalization`. The unit is the rollout, and removed samples are in no mean and get 0."""
    raw = [float(sample.get_reward_value(args)) for sample in samples]
    if args.advantage_estimator not in _NORMALISED or not args.rewards_normalization:
        return raw, raw
    numbers: dict[Any, dict[Any, float]] = {}
    for sample, number in zip(samples, raw, strict=True):
        if not sample.remove_sample:
            numbers.setdefault(sample.group_index, {})[sample.rollout_id] = number
    found = []
    for sample, number in zip(samples, raw, strict=True):
        known = list(numbers.get(sample.group_index, {}).values())
        if sample.remove_sample or len(known) < 2:
            found.append(0.0)
            continue
        apart = number - math.fsum(known) / len(known)
        by_deviation = args.advantage_estimator in _BY_DEVIATION and args.grpo_std_normalization
        found.append(apart / (statistics.stdev(known) + _EPS) if by_deviation else apart)
    return raw, found


class Rollouts:
    """The rollout function of slime's `train.py`, in its rollout process. `pad_token_id` stands for a rollout that has no row.

    Rows are said to be `used` when the next rollout id asks, or by `steps.done()`; `steps.checkpoint(rollout_id)` is yours. `method` is the preset whose
    advantages dispositions tell. `train_async.py` moves weights while rollouts go on: `announce=False`, and a hook of yours says so, and what became of rows.
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

    def generate_rollout(self, args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> Any:
        """slime's `--rollout-function-path`: all groups of one rollout id."""
        if evaluation:
            raise Refused("evaluation", "rollouts of a training run would be measured. Fix: no --eval-interval; evaluate with run.eval.")
        self._check(args)
        self._at(rollout_id)
        asked = data_source.get_samples(args.rollout_batch_size)
        settled = self.groups.settled([Asked(samples[0].prompt, len(samples)) for samples in asked], rollout_id)
        made = [self._filled(group, samples, rollout_id, args.rollout_temperature) for group, samples in zip(settled, asked, strict=True)]
        return import_module("slime.rollout.base_types").RolloutFnTrainOutput(samples=made, metrics={"paddock/lost_tokens": self.lost_tokens})

    async def generate(self, args: Any, sample: Any, sampling_params: Any, evaluation: bool = False) -> Any:
        """slime's `--custom-generate-function-path`: one sample, once its whole group is done. slime's own rollout function stops what is left
        over when it has enough; with this one, let it take as many as it asks for (no over-sampling, no dynamic filter)."""
        if evaluation:
            raise Refused("evaluation", "rollouts of a training run would be measured. Fix: no --eval-interval; evaluate with run.eval.")
        self._check(args)
        if args.over_sampling_batch_size != args.rollout_batch_size or args.dynamic_sampling_filter_path or args.partial_rollout:
            raise Refused("over_sampling", "groups that are given up are not told here. Fix: --rollout-function-path.")
        step = import_module("slime.rollout.sample_hooks")._current_rollout_id
        await asyncio.get_running_loop().run_in_executor(None, self._at, step)
        n = args.n_samples_per_prompt
        group = await self.groups.member((step, sample.group_index), Asked(sample.prompt, n), step)
        found = self._places(group, n, args.rollout_temperature)
        place = sample.index % n
        if place == 0 and group is not None:
            self._note(group, found, step)
        return self._sample(sample, found[place])

    def _at(self, step: int) -> None:
        self.steps.at(step, step, step - 1 if step > 0 else None)

    def _check(self, args: Any) -> None:
        mine = args.custom_reward_post_process_path is not None
        if not mine and (self._null == "left_out" or self._several == "fan_out"):
            raise Refused("rewards", "slime's own baseline would be wrong. Fix: --custom-reward-post-process-path paddock_rl.slime.rewards.")
        if args.group_rm:
            raise Refused("group_rm", "it would put its own numbers in the place of verdicts. Fix: no --group-rm.")

    def _filled(self, group: Group | None, samples: Sequence[Any], step: int, temperature: float) -> list[Any]:
        """slime's samples of a group, with what became of its rollouts."""
        found = self._places(group, len(samples), temperature)
        assert group is not None
        self._note(group, found, step)
        return [self._sample(sample, place) for sample, place in zip(samples, found, strict=True)]

    def _places(self, group: Group | None, n: int, temperature: float) -> list[Place]:
        found = places(group, n, "all" if self._several == "fan_out" else self._several, temperature)
        if self._null == "raise":
            require_numbers(found)
        return found

    def _note(self, group: Group, found: Sequence[Place], step: int) -> None:
        self.lost_tokens += sum(place.lost for place in found)
        self.steps.gave(step, group, [row.row_id for place in found if not place.masked for row in place.rows])

    def _sample(self, sample: Any, place: Place) -> Any:
        """slime's sample with what was recorded; a list of them where a rollout has several rows."""
        fields = [sample_of(row, place.number, place.masked) for row in place.rows]
        if not fields:
            fields = [self._empty(place)]
        made = [_fill(sample if index == 0 else copy(sample), each) for index, each in enumerate(fields)]
        return made if len(made) > 1 else made[0]

    def _empty(self, place: Place) -> dict[str, Any]:
        """A rollout that never called the model: a token of padding that nothing trains."""
        return {
            "tokens": [self._pad, self._pad],
            "response_length": 1,
            "loss_mask": [0],
            "rollout_log_probs": [0.0],
            "reward": place.number,
            "weight_versions": [],
            "remove_sample": place.masked,
            "status": "aborted" if place.masked else "completed",
            "metadata": {},
        }


def _fill(sample: Any, fields: dict[str, Any]) -> Any:
    """A sample of slime's with what was recorded; its group, index and prompt stay as slime set them."""
    before = sample.metadata
    for name, value in fields.items():
        setattr(sample, name, value)
    sample.rollout_id = sample.index
    sample.status = type(sample).Status(fields["status"])
    sample.metadata = {**before, **fields["metadata"]}
    return sample
