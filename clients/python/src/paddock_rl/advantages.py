"""Advantages of one settled round. The unit is the rollout, never the row; a rollout without a number has none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .rows import Group, Member, Row

Method = Literal["grpo", "rloo", "mean", "tree"]
Std = Literal["sample", "population", "none"]
Baseline = Literal["round", "all_rounds"]
Mean = Literal["token", "row", "rollout"]
Shape = Callable[[Group], Mapping[str, float]]
"""Rewards to use in place of the verdicts', by rollout: every usable rollout, and no other. The verdicts stay as they are."""


@dataclass(frozen=True)
class Preset:
    """What one trainer does with the numbers of a group."""

    method: Method
    std: Std
    eps: float


PRESETS: Mapping[str, Preset] = {
    # trl/trainer/grpo_trainer.py: torch.std (n - 1), 1e-4.
    "trl": Preset("grpo", "sample", 1e-4),
    # verl/trainer/ppo/core_algos.py compute_grpo_outcome_advantage: torch.std, epsilon 1e-6.
    "verl": Preset("grpo", "sample", 1e-6),
    # slime/ray/rollout.py, with --grpo-std-normalization: torch.std, 1e-6.
    "slime": Preset("grpo", "sample", 1e-6),
    # skyrl/backends/skyrl_train/utils/ppo_utils.py, grpo_norm_by_std: torch.std, epsilon 1e-6.
    "skyrl": Preset("grpo", "sample", 1e-6),
    # openrlhf/trainer/ppo_utils/experience_maker.py, group_norm: torch.std, 1e-9.
    "openrlhf": Preset("grpo", "sample", 1e-9),
    # tinker_cookbook/rl/data_processing.py: reward minus mean.
    "tinker": Preset("mean", "none", 0.0),
}
_DEFAULTS: Mapping[str, Preset] = {
    "grpo": Preset("grpo", "sample", 1e-6),
    "rloo": Preset("rloo", "none", 0.0),
    "mean": Preset("mean", "none", 0.0),
}
# Rewards that differ by less than this share of the largest are equal: they were, before somebody added and divided.
_SAME = 1e-9
# Of larger ones the square overflows.
_LARGEST = 1e150


class OutcomeStopped(ValueError):
    """The round was stopped when its rewards looked good, so its mean is not that of the policy."""


@dataclass(frozen=True)
class RowAdvantage:
    """What to train one row with. `advantage` is null where the rollout has no number: leave the row out, do not use 0."""

    row_id: str
    rollout_id: str
    advantage: float | None
    reward_used: float | None
    no_signal: bool
    turns: Sequence[float | None] | None
    """With `tree`: the advantage of each of `turn_spans`. `advantage` is their mean over trained tokens then."""
    weight: float
    """1/K of a rollout with K rows, for a loss that is averaged per row; 1 for a mean over tokens."""


@dataclass(frozen=True)
class Advantages:
    """By rollout, and spread over the rows that may train."""

    by_rollout: Mapping[str, float | None]
    reward_used: Mapping[str, float | None]
    no_signal: bool
    """Nothing to learn here: fewer than two numbers, or all the same. All advantages are 0."""
    rows: Sequence[RowAdvantage]


def advantages(
    group: Group,
    method: Method | str = "grpo",
    *,
    std: Std | None = None,
    eps: float | None = None,
    shape: Shape | None = None,
    baseline: Baseline = "round",
    rounds: Iterable[Group] = (),
    outcome_stopped: Literal["refuse", "allow"] = "refuse",
    weights: Literal["row", "token"] = "row",
) -> Advantages:
    """Advantages of a settled round.

    `method` is `grpo` (minus the mean, divided by the deviation), `rloo` (minus the mean of the others), `mean` (minus the mean),
    `tree` (value of a node minus that of the one before it, turn by turn; needs `row_mode` `tree`), or the name of a trainer in `PRESETS`; `std` and `eps` override what that says. `shape` changes rewards first. With
    `baseline="all_rounds"`, mean and deviation are those of `rounds` and this one, each rollout once. `weights` is what each row
    says of its weight: `row` 1/K, `token` 1.

    A member with usable rows of which no token trains has no part in the baseline. One that a rule of the run leaves out (a selector, an
    age, `on_cut: mask`) has.

    Of a run that trains several policies a group holds the rows and rewards of one of them, and these are its advantages.

    Forks of a rollout are no independent members: a family counts once, as the mean of all that came of it, and whoever parts from
    others is compared with them where it parts last. Raises `OutcomeStopped` for a round stopped on rewards, unless allowed.
    """
    if method == "tree":
        if std is not None or eps is not None or shape is not None or baseline != "round" or list(rounds):
            raise ValueError("tree takes the values of the nodes as they are. Fix: leave std, eps, shape, baseline and rounds out.")
        return tree_advantages(group, outcome_stopped=outcome_stopped, weights=weights)
    preset = _preset(method, std, eps)
    if group.outcome_stopped and preset.method == "grpo" and outcome_stopped == "refuse":
        raise OutcomeStopped(
            f"round {group.round} of group {group.group_id} was stopped on its rewards. "
            'Fix: stop on usable members, or pass outcome_stopped="allow".'
        )
    rounds = list(rounds)
    if baseline == "round" and rounds:
        raise ValueError('rounds count with baseline="all_rounds" only')
    if others := {each.policy_name for each in rounds} - {group.policy_name}:
        raise ValueError(f"rounds of {', '.join(sorted(others))} say nothing of {group.policy_name}: advantages are of one policy")
    numbers: dict[str, float] = {}
    seen: dict[str, Member] = {}
    for each in [*rounds, group]:
        numbers.update(_numbers(each, shape))
        seen.update({member.rollout_id: member for member in each.members})
    rows_seen = [row for each in [*rounds, group] for row in each.rows]
    families = _Families([seen[rollout] for rollout in numbers], numbers, rows_seen)
    top = _Scale(list(families.values.values()), preset)
    scales: dict[object, _Scale] = {}
    by_rollout: dict[str, float | None] = {}
    silent = True
    for member in group.members:
        rollout = member.rollout_id
        if rollout not in numbers:
            by_rollout[rollout] = None
            continue
        point = families.point_of(rollout)
        scale = top if point is None else scales.setdefault(point, _Scale(families.at(point), preset))
        by_rollout[rollout] = scale.of(numbers[rollout])
        silent = silent and scale.silent
    rewards = {rollout: numbers.get(rollout) for rollout in by_rollout}
    rows = [
        RowAdvantage(
            row_id=row.row_id,
            rollout_id=row.rollout_id,
            advantage=by_rollout.get(row.rollout_id),
            reward_used=rewards.get(row.rollout_id),
            no_signal=silent,
            turns=None,
            weight=1 / row.rows_of_rollout if weights == "row" else 1.0,
        )
        for row in group.trainable()
    ]
    return Advantages(by_rollout, rewards, silent, rows)


def tree_advantages(
    group: Group,
    *,
    outcome_stopped: Literal["refuse", "allow"] = "refuse",
    weights: Literal["row", "token"] = "row",
) -> Advantages:
    """Each answer's advantage is the value of its node minus that of the node before it. Where a family begins, that is the mean of all
    families of the round, each counted once, however many rollouts it has. `advantages(group, "tree")` is this.
    """
    nodes = group.nodes
    if nodes is None:
        raise ValueError(f"round {group.round} of group {group.group_id} has no nodes. Fix: open the run with row_mode=\"tree\".")
    if group.outcome_stopped and outcome_stopped == "refuse":
        raise OutcomeStopped(
            f"round {group.round} of group {group.group_id} was stopped on its rewards. "
            'Fix: stop on usable members, or pass outcome_stopped="allow".'
        )
    families = [node.value for node in nodes if node.parent is None and node.value is not None]
    top = _mean(families) if families else None
    own: list[float | None] = []
    last: dict[str, int] = {}
    for index, node in enumerate(nodes):
        before = top if node.parent is None else nodes[node.parent].value
        own.append(None if node.value is None or before is None else node.value - before)
        last.update((rollout, index) for rollout in node.rollouts)
    by_rollout = {
        member.rollout_id: None if member.number is None or member.rollout_id not in last else own[last[member.rollout_id]]
        for member in group.members
    }
    rewards = {member.rollout_id: member.number for member in group.members}
    found = []
    for row in group.trainable():
        turns = [own[node] for node in row.turn_nodes or []]
        mask = row.loss_mask
        parts = [(value, sum(mask[start:end])) for value, (start, end) in zip(turns, row.turn_spans, strict=True)]
        known = [(value, tokens) for value, tokens in parts if value is not None and tokens > 0]
        tokens = sum(count for _, count in known)
        mean = math.fsum(value * count for value, count in known) / tokens if tokens else None
        found.append((row, turns, mean))
    largest = max((abs(number) for number in rewards.values() if number is not None), default=0.0)
    silent = all(value is None or abs(value) <= _SAME * largest for _, turns, _ in found for value in turns)
    rows = [
        RowAdvantage(
            row_id=row.row_id,
            rollout_id=row.rollout_id,
            advantage=mean,
            reward_used=rewards.get(row.rollout_id),
            no_signal=silent,
            turns=turns,
            weight=1 / row.rows_of_rollout if weights == "row" else 1.0,
        )
        for row, turns, mean in found
    ]
    return Advantages(by_rollout, rewards, silent, rows)


def row_scales(rows: Sequence[Row], mean: Mean) -> list[float]:
    """What to multiply each token's loss of a row with, so that the sum over all rows is the mean that was asked for.

    `token`: every trained token counts the same. `row`: the mean over rollouts of the mean of their rows' token means. `rollout`:
    the mean over rollouts of their token means, however many rows they have. Rows that train nothing get 0.
    """
    trained = [row.trained_tokens for row in rows]
    of_rollout: dict[str, int] = {}
    rows_of: dict[str, int] = {}
    for row, tokens in zip(rows, trained, strict=True):
        if tokens > 0:
            of_rollout[row.rollout_id] = of_rollout.get(row.rollout_id, 0) + tokens
            rows_of[row.rollout_id] = rows_of.get(row.rollout_id, 0) + 1
    total = sum(trained)

    def scale(row: Row, tokens: int) -> float:
        if tokens == 0:
            return 0.0
        if mean == "token":
            return 1 / total
        share = of_rollout[row.rollout_id] if mean == "rollout" else tokens * rows_of[row.rollout_id]
        return 1 / (len(of_rollout) * share)

    return [scale(row, tokens) for row, tokens in zip(rows, trained, strict=True)]


def _preset(method: str, std: Std | None, eps: float | None) -> Preset:
    known: Mapping[str, Preset] = {**_DEFAULTS, **PRESETS}
    if method not in known:
        raise ValueError(f"there are no advantages {method!r}. Fix: one of {', '.join(known)}.")
    preset = known[method]
    if std is not None and preset.method != "grpo" and std != "none":
        raise ValueError(f"{method} does not divide by a deviation. Fix: leave std out, or take grpo.")
    if std not in (None, "sample", "population", "none"):
        raise ValueError(f"std is sample, population or none, and not {std!r}")
    return Preset(preset.method, std or preset.std, preset.eps if eps is None else eps)


def _numbers(group: Group, shape: Shape | None) -> dict[str, float]:
    verdicts = {member.rollout_id: member.number for member in group.members}
    wanted = {rollout for rollout, number in verdicts.items() if number is not None}
    idle = _idle(group)
    if shape is None:
        return {rollout: number for rollout, number in verdicts.items() if number is not None and rollout not in idle}
    shaped = dict(shape(group))
    if unknown := shaped.keys() - wanted:
        raise ValueError(f"shape gave a number to {', '.join(sorted(unknown))}, which has none: null is not a reward")
    if missing := wanted - shaped.keys():
        raise ValueError(f"shape gave no number to {', '.join(sorted(missing))}")
    for rollout, number in shaped.items():
        if not math.isfinite(number):
            raise ValueError(f"shape gave {number!r} to {rollout}")
    return {rollout: number for rollout, number in shaped.items() if rollout not in idle}


def _idle(group: Group) -> set[str]:
    """Rollouts with usable rows of which no token trains: what they sampled is broken. Rows that a rule of the run leaves out (`filtered`, `stale`,
    a masked cut) are unusable, and their rewards count all the same.
    """
    rows = {row.rollout_id for row in group.rows if not row.unusable_reason}
    trained = {row.rollout_id for row in group.rows if any(row.loss_mask)}
    return rows - trained - {member.rollout_id for member in group.members if member.cut == "mask"}


class _Scale:
    """Turns a number into an advantage among others."""

    def __init__(self, numbers: Sequence[float], preset: Preset) -> None:
        self._preset = preset
        self._n = len(numbers)
        largest = max((abs(number) for number in numbers), default=0.0)
        if largest > _LARGEST:
            raise ValueError(f"rewards beyond {_LARGEST:g} have no deviation that a float can hold. Fix: scale them, by `shape`.")
        self._mean = _mean(numbers) if numbers else 0.0
        spread = max(numbers) - min(numbers) if numbers else 0.0
        self.silent = spread <= _SAME * largest
        squares = math.fsum((number - self._mean) ** 2 for number in numbers)
        degrees = self._n - 1 if preset.std == "sample" else self._n
        self._divisor = 1.0 if preset.std == "none" or self.silent else math.sqrt(squares / degrees) + preset.eps

    def of(self, number: float) -> float:
        if self.silent:
            return 0.0
        if self._preset.method == "rloo":
            return (number - self._mean) * self._n / (self._n - 1)
        return (number - self._mean) / self._divisor


_Point = tuple[str, str]
"""A rollout and the call of it at which others began."""


class _Families:
    """Which rollouts began in the middle of which others. Of a forked rollout whose origin is not here, nothing is shared."""

    def __init__(self, members: Sequence[Member], numbers: Mapping[str, float], rows: Iterable[Row]) -> None:
        self._numbers = numbers
        self._hanging: dict[_Point, list[str]] = {}
        self._began: dict[str, _Point] = {}
        for member in members:
            fork = member.forked_from
            if fork is not None and fork["rollout_id"] in numbers:
                point = (str(fork["rollout_id"]), str(fork["call_id"]))
                self._hanging.setdefault(point, []).append(member.rollout_id)
                self._began[member.rollout_id] = point
        places = {(row.rollout_id, call): place for row in rows for place, call in enumerate(row.node_ids)}
        # The fork points of each rollout in the order of its calls.
        self._points: dict[str, list[_Point]] = {}
        for point in sorted(self._hanging, key=lambda point: places.get(point, -1)):
            self._points.setdefault(point[0], []).append(point)
        roots = [member.rollout_id for member in members if member.rollout_id not in self._began]
        self.values = {root: _mean(self._leaves(root)) for root in roots}

    def at(self, point: _Point) -> list[float]:
        """What hangs on a fork point: the way on of the rollout itself, and those that began there."""
        later = self._points[point[0]].index(point) + 1
        return [_mean(self._leaves(point[0], later)), *(_mean(self._leaves(rollout)) for rollout in self._hanging[point])]

    def point_of(self, rollout: str) -> _Point | None:
        """The last fork point on a rollout's way. Null: it shares nothing."""
        own = self._points.get(rollout)
        return own[-1] if own is not None else self._began.get(rollout)

    def _leaves(self, rollout: str, first: int = 0) -> list[float]:
        """The numbers of a rollout and of all that came of it, from one of its fork points on."""
        found = [self._numbers[rollout]]
        for point in self._points.get(rollout, [])[first:]:
            for child in self._hanging[point]:
                found.extend(self._leaves(child))
        return found


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)
