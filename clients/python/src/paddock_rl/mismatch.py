"""Do the trainer and the engine mean the same tokens? Recorded logprobs against those that the trainer computes, before it steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .errors import PaddockError
from .rows import Row


@dataclass(frozen=True)
class Mismatch:
    """Over all trained tokens: `kl` of the engine's policy from the trainer's, and the distribution of absolute differences.

    `kl` is the mean of `exp(d) - 1 - d` with d = trainer - recorded (never negative, small variance;
    http://joschu.net/blog/kl-approx.html, k3).
    """

    kl: float
    max: float
    p99: float
    tokens: int
    by_rollout: Mapping[str, float]
    """The mean absolute difference of each rollout."""

    def report(self) -> dict[str, float]:
        """What `Run.metrics(mismatch=...)` takes."""
        whole: dict[str, Any] = asdict(self)
        return {name: whole[name] for name in ("kl", "max", "p99")}


@dataclass(frozen=True)
class Bound:
    """What is still the same policy. The defaults are for bfloat16 engines at the version that sampled; float32 stays below 1e-3."""

    kl: float = 0.02
    p99: float = 0.5
    max: float = math.inf


class MismatchTooLarge(PaddockError):
    """The trainer's logprobs are not those of what was sampled. `rollouts` holds those that differ, the worst first."""

    def __init__(self, message: str, mismatch: Mismatch, rollouts: Sequence[str]) -> None:
        super().__init__(message)
        self.mismatch = mismatch
        self.rollouts = rollouts


def check_mismatch(rows: Sequence[Row], trainer_logprobs: Sequence[Sequence[float]], bound: Bound | None = None) -> Mismatch:
    """Compares, and raises `MismatchTooLarge` over the bound.

    `trainer_logprobs` holds per row either one number per token of the row or one per trained token. Give rows that the weights at
    hand have sampled: an older row differs because the policy has moved.
    """
    limit = bound or Bound()
    if len(rows) != len(trainer_logprobs):
        raise ValueError(f"{len(rows)} rows, and logprobs for {len(trainer_logprobs)}")
    terms: list[float] = []
    differences: list[float] = []
    by_rollout: dict[str, list[float]] = {}
    for row, given in zip(rows, trainer_logprobs, strict=True):
        for recorded, computed in _pairs(row, given):
            d = computed - recorded
            # exp overflows behind 709; anything there is far over every bound.
            terms.append(math.exp(min(d, 700.0)) - 1 - d)
            differences.append(abs(d))
            by_rollout.setdefault(row.rollout_id, []).append(abs(d))
    if not differences:
        return Mismatch(0.0, 0.0, 0.0, 0, {})
    ordered = sorted(differences)
    means = {rollout: math.fsum(found) / len(found) for rollout, found in by_rollout.items()}
    mismatch = Mismatch(
        kl=math.fsum(terms) / len(terms),
        max=ordered[-1],
        p99=ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)],
        tokens=len(ordered),
        by_rollout=means,
    )
    over = [name for name in ("kl", "p99", "max") if getattr(mismatch, name) > getattr(limit, name)]
    if over:
        worst = sorted(means, key=lambda rollout: -means[rollout])
        told = ", ".join(f"{name} {getattr(mismatch, name):.4g} (at most {getattr(limit, name):g})" for name in over)
        raise MismatchTooLarge(f"{told}; rollouts, the worst first: {', '.join(worst[:8])}", mismatch, worst)
    return mismatch


def _pairs(row: Row, given: Sequence[float]) -> list[tuple[float, float]]:
    recorded = row.logprobs
    trained = [index for index, bit in enumerate(row.loss_mask) if bit]
    if len(given) == row.n_tokens:
        computed = [float(given[index]) for index in trained]
    elif len(given) == len(trained):
        computed = [float(value) for value in given]
    else:
        raise ValueError(f"row {row.row_id}: {len(given)} logprobs for {row.n_tokens} tokens, of which {len(trained)} are trained")
    pairs: list[tuple[float, float]] = [(recorded[index], value) for index, value in zip(trained, computed, strict=True)]
    for index, (known, value) in zip(trained, pairs, strict=True):
        if math.isnan(known) or math.isnan(value):
            whose = "recorded" if math.isnan(known) else "the trainer's"
            raise ValueError(f"row {row.row_id}: the {whose} logprob of token {index} is not known, and it is to be trained")
    return pairs
