"""TRL's `GRPOTrainer` trains on rollouts of your harness, or of Paddock: its `rollout_func`, reward function and callback.

    from paddock_rl.trl import Rollouts, paddock_reward

    with Paddock(url).run("grpo", purpose="train") as run:
        rollouts = Rollouts(run, harness=solve, move_weights=to_engine)
        trainer = GRPOTrainer(model, reward_funcs=paddock_reward, args=config, train_dataset=data, rollout_func=rollouts)
        rollouts.bind(trainer)
        trainer.train()

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| the order of rows: `num_generations` in a row | TRL | a reward of None and a mask of zeros | refused, or the main chain |

Written against trl 1.16.0, trainer/grpo_trainer.py, and run with it on a CPU (test/real/trl_test.py). There

- `_generate` takes `prompt_ids`, `completion_ids`, `logprobs` and `env_mask` (1: the model spoke); reward functions get the rest;
- `_generate_and_score_completions` leaves a row for which all reward functions say None out of mean and deviation. Before 1.6.0
  it counted such a row as 0, so older versions are refused;
- **without vLLM the returned logprobs are ignored**: `old_per_token_logps` is None there, and `_compute_loss` takes the trainer's
  own in its place. They are read with `use_vllm` and `vllm_importance_sampling_correction`, and by `off_policy_mask_threshold`.
  So TRL does not notice weights that never reached the engine. This module refuses rows of other weights than those it announced.

Nothing of TRL, torch or transformers is imported before `bind`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, get_args

from .advantages import Advantages, advantages
from .client import Run
from .convert._rows import MultiRow, NoNumber, Several, one_row, response, rows_of
from .convert.trl import to_trl_async
from .groups import Asked, Groups, Harness, OpenRollout, Refused, Task, check_temperature, chosen
from .rows import Group, Member, Row

__all__ = ["MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "Rollouts", "paddock_reward", "rollout_samples"]

Null = Literal["left_out", "masked_mean", "raise"]
"""A rollout that has no number after all attempts: None, which TRL leaves out of the baseline; the mean of the group's numbers;
or `NoNumber`. Its mask is zeros either way, and it is never 0."""

_OLDEST = (1, 6)


def paddock_reward(
    prompts: Sequence[Any], completions: Sequence[Any], *, paddock_number: Sequence[float | None], **_: Any
) -> list[float | None]:
    """The reward function to give `GRPOTrainer`: the verdicts of Paddock, None where there is none."""
    return list(paddock_number)


@dataclass(frozen=True)
class _Use:
    """What is to be said of rows once the trainer's step `due` is done."""

    due: int
    use: int
    rows: Sequence[Mapping[str, Any]]


class Rollouts:
    """`rollout_func` of a `GRPOTrainer`, one process. After the trainer is made, call `bind(trainer)`.

    `harness` does the rollouts; without it Paddock does them, in a run with `tasks`. `task` makes a task of a prompt: the name of
    one of the run's tasks, or `{name, instruction}` (default: the prompt's text). `spare` further rollouts a group may have where
    members come to nothing (a failed infrastructure, no number). `move_weights(trainer, version)` brings the trainer's weights to
    the engine; it is called between `pausing` and `live`. With `use_vllm` TRL does that itself, and it is announced around.
    `group` holds further keys of the groups (`deadline_s, horizon, on_cut, labels, ...`).
    """

    def __init__(
        self,
        run: Run,
        *,
        harness: Harness | None = None,
        task: Task | None = None,
        move_weights: Callable[[Any, int], object] | None = None,
        spare: int = 0,
        null: Null = "left_out",
        several: Several = "refuse",
        group: Mapping[str, Any] | None = None,
        at_once: int = 16,
    ) -> None:
        if null not in get_args(Null) or several not in get_args(Several):
            raise Refused("choice", f"null is one of {get_args(Null)}, and several one of {get_args(Several)}.")
        self._groups = Groups(run, harness=harness, task=task, spare=spare, group=group, at_once=at_once)
        self.run = run
        self.lost_tokens = 0
        """Trained tokens that several="main_chain" left out so far."""
        self._move_weights = move_weights
        self._null: Null = null
        self._several: Several = several
        self._bound: Any = None
        self._live: int | None = None
        self._begun: int | None = None
        self._label: str | None = None
        self._uses: list[_Use] = []

    def bind(self, trainer: Any) -> None:
        """Checks the trainer's settings and adds the callback that attaches, says what became of rows after each step, and what
        is safe after each checkpoint. Raises `Refused`.
        """
        _check(trainer, self, import_module("trl").__version__)
        if trainer.use_vllm == (self._move_weights is not None):
            raise Refused(
                "weights",
                "TRL moves the weights to vLLM itself. Fix: leave out move_weights."
                if trainer.use_vllm
                else "the engine would keep the weights that it has. Fix: give move_weights.",
            )
        if trainer.use_vllm:
            move = trainer.vllm_generation.sync_weights
            trainer.vllm_generation.sync_weights = lambda: self._announce(trainer.state.global_step, move)
        trainer.add_callback(_callback(import_module("transformers").TrainerCallback, self))
        self._bound = trainer

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """TRL's `rollout_func`: one row for each prompt, in its order."""
        if trainer is not self._bound:
            raise Refused("not_bound", "nobody would say what became of the rows. Fix: call bind(trainer) before train().")
        if not trainer.model.training:
            raise Refused("evaluation", "rollouts of a training run would be measured. Fix: evaluate outside of the trainer.")
        step = trainer.state.global_step
        if not trainer.use_vllm and step != self._live:
            move = self._move_weights
            self._announce(step, lambda: move(trainer, step) if move else None)
        each = trainer.num_generations
        groups = self._groups.settled([Asked(prompt, each) for prompt in _chunks(prompts, each)], step)
        ids = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        said: list[Mapping[str, Any]] = []
        known = trainer.multi_objective_aggregation == "sum_then_normalize" and trainer.scale_rewards in ("group", "none")
        method = None if not known else "trl" if trainer.scale_rewards == "group" else "mean"
        columns: list[dict[str, Any]] = []
        for group in groups:
            columns += self._rows(group, each, ids.pad_token_id, trainer.temperature, method, said)
        self._uses += _uses(trainer, step, said)
        return {key: [row[key] for row in columns] for key in columns[0]}

    def _announce(self, version: int, move: Callable[[], object]) -> None:
        """Moves weights between `pausing` and `live`."""
        self.run.policy(version, "pausing")
        try:
            move()
        except BaseException:
            self.run.policy(version, "failed")
            raise
        # Weights of a checkpoint that was gone on from have the name that they had.
        self.run.policy(version, "live", step=version or None, label=self._label if version == self._begun else None)
        self._live = version

    def _rows(
        self, group: Group | None, each: int, pad: int, temperature: float, method: str | None, said: list[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """A row of TRL for each of `each` members; adds to `said` what became of the group's rows."""
        members = [] if group is None else chosen(group, each)
        numbers = [member.number for member in members if member.number is not None]
        out = []
        trained: dict[str, Row] = {}
        for place in range(each):
            member = members[place] if place < len(members) else None
            number = self._number(group, member, numbers)
            masked = member is None or member.number is None
            row = None if group is None or member is None else self._row(group, member)
            cut = None if row is None else response(row, masked=masked)
            if row is not None and not masked:
                self._check_row(row, temperature)
                trained[row.row_id] = row
            # TRL wants a token at least: one of padding that nothing trains.
            filled = cut is None or not cut.prompt_ids or not cut.response_ids
            out.append(
                {
                    "prompt_ids": [pad] if cut is None or filled else cut.prompt_ids,
                    "completion_ids": [pad] if cut is None or filled else cut.response_ids,
                    "logprobs": [0.0] if cut is None or filled else cut.logprobs,
                    "env_mask": [0] if cut is None or filled else cut.mask,
                    "paddock_number": number,
                    "paddock_rollout": None if member is None else member.rollout_id,
                    "paddock_row": None if row is None else row.row_id,
                }
            )
        if group is not None:
            # A mean in the place of a number changes TRL's deviation, and with it the advantages of the others.
            filled_in = self._null == "masked_mean" and len(numbers) < each
            said += _said(group, members, trained, None if filled_in else method)
        return out

    def _row(self, group: Group, member: Member) -> Row | None:
        """The row that stands for a rollout; of one that trains nothing, any."""
        if member.number is None:
            return next(iter(reversed(rows_of(group, member))), None)
        row, lost = one_row(group, member, self._several)
        self.lost_tokens += lost
        return row

    def _number(self, group: Group | None, member: Member | None, numbers: Sequence[float]) -> float | None:
        if member is not None and member.number is not None:
            return member.number
        if self._null == "left_out":
            return None
        name = "a rollout" if member is None else f"rollout {member.rollout_id} ({member.out or 'no_number'})"
        where = "its group, which failed," if group is None else f"group {group.group_id}"
        if self._null == "raise":
            raise NoNumber(f'{name} of {where} has no number after all attempts. Fix: more spare, or null="left_out".')
        if not numbers:
            raise NoNumber(f'no rollout of {where} has a number, so there is no mean. Fix: null="left_out".')
        return math.fsum(numbers) / len(numbers)

    def _check_row(self, row: Row, temperature: float) -> None:
        if row.oldest_version != self._live:
            raise Refused("stale", f"row {row.row_id} was sampled under version {row.oldest_version}, and {self._live} is live.")
        check_temperature(row, temperature)

    def _begin(self, step: int) -> None:
        self.run.attach(step or None)
        there = self.run.state()["policy"]
        self._begun, self._label, self._live = step, there["label"] if there["version"] == step else None, None

    def _done(self, step: int) -> None:
        """A step is done: what was due with it is said."""
        due = [one for one in self._uses if one.due <= step]
        self._uses = [one for one in self._uses if one.due > step]
        said = [{**row, "use": one.use, "step": one.due} for one in due for row in one.rows]
        if said:
            self.run.dispose(said)

    def _end(self, step: int) -> None:
        """The training is over. Rows of a batch that it did not get through may have been trained, so nobody gets them again."""
        first = [row for one in self._uses if one.use == 0 for row in one.rows]
        self._uses = []
        if first:
            reason = "the training ended within this batch"
            left = {"step": step, "outcome": "skipped", "reason": reason, "advantage": None, "reward_used": None}
            self.run.dispose([{**row, **left} for row in first])


def rollout_samples(group: Group, computed: Advantages, group_number: int) -> list[Any]:
    """`to_trl_async` as what trl 1.16.0's asynchronous trainer takes from its queue: `RolloutSample`s with numpy's arrays.

    Announce weights under TRL's own numbers (`update_model_version`), because it drops samples by the difference. It does not say
    which ones it dropped, so what is said of their rows is yours.
    """
    made = import_module("trl.experimental.async_grpo.async_rollout_worker").RolloutSample
    asarray = import_module("numpy").asarray
    types = {"input_ids": "int64", "completion_mask": "int64", "old_log_probs": "float32"}
    return [
        made(**{name: asarray(value, types[name]) if name in types else value for name, value in sample.items()})
        for sample in to_trl_async(group, computed, group_number)
    ]


def _callback(base: Any, rollouts: Rollouts) -> Any:
    """TRL's clock, told to Paddock."""

    class PaddockCallback(base):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rollouts._begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rollouts._done(state.global_step)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rollouts.run.checkpoint(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rollouts._end(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
            told = {**(logs or {}), "paddock/lost_tokens": rollouts.lost_tokens}
            values = {
                name: float(value) for name, value in told.items() if isinstance(value, (int, float)) and math.isfinite(value)
            }
            rollouts.run.metrics(state.global_step, values)

    return PaddockCallback()


def _check(trainer: Any, rollouts: Rollouts, version: str) -> None:
    """Refuses by name what would be ignored, or would mean something else."""
    args = trainer.args
    window, passes = args.gradient_accumulation_steps, args.num_iterations
    batch = args.steps_per_generation
    found = [
        ("old_trl", _numbers(version) < _OLDEST, f"trl {version} counts a null as 0. Fix: trl 1.6 or newer."),
        ("rollout_func", trainer.rollout_func is not rollouts, "the trainer takes other rollouts. Fix: rollout_func=rollouts."),
        (
            "reward_funcs",
            list(trainer.reward_funcs) != [paddock_reward] or any(weight != 1 for weight in trainer.reward_weights),
            "beside another function a null would count as 0; a weight changes the verdict. Fix: reward_funcs=paddock_reward.",
        ),
        ("processes", trainer.accelerator.num_processes != 1, "a group may lie in several processes. Fix: one process."),
        ("tools", bool(trainer.tools), "TRL would ignore env_mask. Fix: the harness has the tools."),
        ("evaluation", str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no", "Fix: eval_strategy='no'."),
        (
            "mask_truncated_completions",
            bool(trainer.mask_truncated_completions),
            "on_cut of the group says what a cut rollout counts. Fix: mask_truncated_completions=False.",
        ),
        (
            "batch",
            batch % window != 0 and window % (batch * passes) != 0,
            f"steps of {window} batches begin inside of {batch} generated ones. Fix: let one be a multiple of the other.",
        ),
    ]
    for code, wrong, message in found:
        if wrong:
            raise Refused(code, message)


def _uses(trainer: Any, step: int, rows: Sequence[Mapping[str, Any]]) -> list[_Use]:
    """When each pass over the rows of a generated batch is done: TRL goes `num_iterations` times over `steps_per_generation`
    batches, `gradient_accumulation_steps` of them to a step."""
    window, batch = trainer.args.gradient_accumulation_steps, trainer.args.steps_per_generation
    found = []
    for use in range(trainer.args.num_iterations):
        due = step + (1 if batch % window != 0 else (use + 1) * batch // window)
        found.append(_Use(due, use, [row for row in rows if use == 0 or row["outcome"] in ("used", "no_signal")]))
    return found


def _said(group: Group, members: Sequence[Member], trained: Mapping[str, Row], method: str | None) -> list[Mapping[str, Any]]:
    """What became of each row of a group, with TRL's advantage where its formula is known."""
    computed = advantages(replace(group, members=members), method or "trl")
    chosen = {member.rollout_id: member for member in members}
    said: list[Mapping[str, Any]] = []
    for row in group.rows:
        member = chosen.get(row.rollout_id)
        if row.row_id in trained:
            worth = computed.by_rollout[row.rollout_id] if method else None
            outcome = "no_signal" if method and computed.no_signal else "used"
            said.append({"row": row.row_id, "outcome": outcome, "advantage": worth, "reward_used": row.reward})
            continue
        reason = row.unusable_reason or ("surplus" if member is None else member.out or "main_chain")
        said.append({"row": row.row_id, "outcome": "skipped", "reason": reason})
    return said


def _chunks(prompts: Sequence[Any], each: int) -> list[Any]:
    """The prompt of each group: TRL takes `each` neighbours for one."""
    found = []
    for start in range(0, len(prompts), each):
        chunk = prompts[start : start + each]
        if len(chunk) < each or any(prompt != chunk[0] for prompt in chunk):
            raise Refused("groups", f"rows {start} to {start + each} are not {each} of one prompt, and TRL would compare them.")
        found.append(chunk[0])
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """`1.16.0.dev0` as (1, 16)."""
    return tuple(int(part) for part in version.split(".")[:2])
