"""slime at 624b824a8 as far as its adapter meets it: names and rules of its source, which is in no package index.

| here | there |
|---|---|
| `Sample` | slime/utils/types.py 94-146, and `get_reward_value` 246 |
| `RolloutFnTrainOutput` | slime/rollout/base_types.py 8-11 |
| `Source.get_samples` | slime/rollout/data_source.py 90-118: deep copies, `group_index` and `index` counted up, no `rollout_id` |
| `check` | slime/ray/rollout.py 583-606 and 671-682: what fans out names its rollout, lists are flattened, masks are as long as responses |
| `normalised` | slime/ray/rollout.py 608-633: rewards without `rewards` |
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any


@dataclass
class Sample:
    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: Any = ""
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: Any = None
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    remove_sample: bool = False

    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"
        FAILED = "failed"

    status: Status = Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_reward_value(self, args: Any) -> float:
        return self.reward if not args.reward_key else self.reward[args.reward_key]


@dataclass
class RolloutFnTrainOutput:
    samples: list[Any]
    metrics: dict[str, Any] | None = None


def arguments(n: int, batch: int = 1, *, mine: bool = False, **more: Any) -> Any:
    """What the adapter reads of slime's arguments, with their defaults; `mine` with the adapter's own normalisation."""
    known = {
        "n_samples_per_prompt": n,
        "rollout_batch_size": batch,
        "over_sampling_batch_size": batch,
        "rollout_temperature": 1.0,
        "reward_key": None,
        "group_rm": False,
        "dynamic_sampling_filter_path": None,
        "partial_rollout": False,
        "advantage_estimator": "grpo",
        "rewards_normalization": True,
        "grpo_std_normalization": True,
        "custom_reward_post_process_path": "paddock_rl.slime.rewards" if mine else None,
    }
    return SimpleNamespace(**{**known, **more})


class Source:
    def __init__(self, args: Any, prompts: list[str]) -> None:
        self.args = args
        self.prompts = prompts
        self.groups = 0
        self.samples = 0

    def get_samples(self, num_samples: int) -> list[list[Sample]]:
        found = []
        for prompt in self.prompts[:num_samples]:
            group = []
            for _ in range(self.args.n_samples_per_prompt):
                group.append(Sample(group_index=self.groups, index=self.samples, prompt=prompt, label=f"of {prompt}"))
                self.samples += 1
            self.groups += 1
            found.append(group)
        return found


def flat(samples: list[Any]) -> list[Sample]:
    return [each for sample in samples for each in (flat(sample) if isinstance(sample, list) else [sample])]


def check(args: Any, samples: list[Any]) -> None:
    """Raises where slime would."""
    for sample in flat(samples):
        assert sample.rollout_id is not None
        assert sample.loss_mask is not None and len(sample.loss_mask) == sample.response_length
        assert sample.rollout_log_probs is not None and len(sample.rollout_log_probs) == sample.response_length
        assert len(sample.tokens) > sample.response_length > 0
        assert isinstance(sample.get_reward_value(args), float) and isinstance(sample.status, Sample.Status)


def normalised(args: Any, rewards: list[float]) -> list[float]:
    """By rows of n; all of the batch is one row where there are more samples than that."""
    n = args.n_samples_per_prompt
    size = n if len(rewards) == n * args.rollout_batch_size else len(rewards)
    found = []
    for start in range(0, len(rewards), size):
        row = rewards[start : start + size]
        found += [(own - statistics.fmean(row)) / (statistics.stdev(row) + 1e-6) for own in row]
    return found
