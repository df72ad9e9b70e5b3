"""verl trains on rollouts of your harness: its agent loop manager, and its agent loop.

    # my_project/rollouts.py, told to verl as
    #   +actor_rollout_ref.rollout.agent.agent_loop_manager_class=my_project.rollouts.Rollouts
    from paddock_rl.verl import Manager

    class Rollouts(Manager):
        def open(self):
            return Groups(Paddock(url).run("verl", purpose="train"), harness=solve, spare=2)

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `uid` | verl, from `reward_score` | nothing is put for it, so it is in no mean; or the mean of the others and a mask of zeros; or the group fails | several outputs, of which the last is scored |

Written against verl 0.9.1 and its classes, `trainer.use_v1` (its default) and `trainer.v1.trainer_mode=sync`. There

- `verl/trainer/main_ppo.py` 111-131: the manager is `create`d and has one method, which puts what comes of a batch into TransferQueue;
- `verl/trainer/ppo/v1/agent_loop_tq.py` 107-228: keys `{uid}_{session}_{index}`, their fields and tags, and the status of `{uid}` once all of it is there;
- `verl/trainer/ppo/v1/utils.py`, `compute_advantage_for_multi_trajectories`: advantages are of the last output of each session and read at its first trained
  token, so an output that trains nothing is never put last. A session without output is in no mean: **verl has a word for null**.

test/real/trainers_test.py puts it through them. Nothing of verl is imported before the first batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any, Literal, get_args

from .convert.verl import output_of
from .groups import Asked, Groups, MultiRow, NoNumber, OpenRollout, Refused, Steps, places, require_numbers
from .rows import Group, Row

__all__ = ["AgentLoop", "Groups", "Manager", "MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "outputs"]

Null = Literal["left_out", "masked_mean", "raise"]
"""A rollout that has no number after all attempts: no output, which verl leaves out of mean and deviation; the mean of the group's numbers
and a mask of zeros; or `NoNumber`, which makes verl's group a failed one. It is never 0."""

_log = logging.getLogger(__name__)


def outputs(group: Group | None, n: int, null: Null = "left_out", temperature: float | None = None) -> list[list[dict[str, Any]]]:
    """For each of the `n` sessions of a prompt the fields of its `AgentLoopOutput`s; none for a session that is left out.

    Raises `NoNumber`: also where no session has a number, for verl would wait for rows of that prompt.
    """
    found = places(group, n, "all", temperature)
    assert group is not None
    if null == "raise":
        require_numbers(found)
    if any(row.media for place in found for row in place.rows):
        raise Refused("media", f"group {group.group_id} has pictures or sound, which verl wants as tensors of its own processor.")
    out = []
    for session, place in enumerate(found):
        rows = [] if place.masked and null == "left_out" else _that_train(place.rows)
        out.append([output_of(row, place.number, place.masked, group.group_id, session, index) for index, row in enumerate(rows)])
    return out


def _that_train(rows: Sequence[Row]) -> Sequence[Row]:
    """Those that train, in their order; where nothing does, the last one."""
    return [row for row in rows if row.trained_tokens] or rows[-1:]


class _Seam:
    """What manager and agent loop share: one per process."""

    def __init__(self, groups: Groups, *, announce: bool = True, method: str | None = None) -> None:
        self.groups = groups
        self.steps = Steps(groups.run, announce=announce, method=method)

    def at(self, step: int) -> None:
        # verl's first step is 1, and its own name of the weights that sample it is 0 (trainer_base.py 454, 608).
        self.steps.at(step, step - 1, step - 1 if step > 1 else None)

    def gave(self, step: int, group: Group, made: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self.steps.gave(step, group, [each["extra_fields"]["row_id"] for rows in made for each in rows if any(each["response_mask"])])


class Manager:
    """verl's whole seam, in verl's own process: prompts come, and each goes into TransferQueue once its group has settled.

    Override `open`. `null`, `announce` and `method` are of the class. Rows are said to be `used` when the next step asks, or by `steps.done()`;
    `steps.checkpoint(step)` is yours. Validation is refused: rollouts of a training run would be measured.
    """

    null: Null = "left_out"
    announce = True
    """False: your own hook says `pausing` and `live`, and what became of rows. Without one, verl's asynchronous trainers are refused."""
    method: str | None = "verl"
    """The advantages that dispositions tell: `verl` with `norm_adv_by_std_in_grpo`, `mean` without; None tells none."""

    def __init__(self, config: Any) -> None:
        self.config = config
        mode = config.trainer.v1.trainer_mode
        if self.announce and mode != "sync":
            raise Refused("asynchronous", f"trainer_mode {mode} moves weights while rollouts go on. Fix: announce=False and a hook of yours.")
        if self.null not in get_args(Null):
            raise Refused("choice", f"null is one of {get_args(Null)}.")
        self.groups = self.open()
        self._seam = _Seam(self.groups, announce=self.announce, method=self.method)
        self.steps = self._seam.steps
        self._prompts = ThreadPoolExecutor(256, "paddock-prompt")
        self.under_way: list[Future[None]] = []

    def open(self) -> Groups:
        """The run and its harness."""
        raise NotImplementedError("what are the rollouts of? Fix: override open().")

    @classmethod
    def create(cls, config: Any, llm_client: Any = None, teacher_client: Any = None, reward_loop_worker_handles: Any = None) -> Manager:
        """verl's door. The harness calls the engine through Paddock, so `llm_client` is not used; neither are reward workers."""
        if teacher_client is not None:
            raise Refused("teacher", "nobody would ask it for its logprobs. Fix: no distillation.")
        return cls(config)

    def generate_sequences(self, prompts: Any) -> None:
        """Begins the rollouts of a `TensorDict` of prompts, and does not wait for them."""
        if "validate" in prompts and bool(prompts["validate"]):
            raise Refused("evaluation", "Fix: trainer.val_before_train=False and trainer.test_freq=-1; evaluate with run.eval.")
        step = int(prompts["global_steps"])
        self._seam.at(step)
        self.under_way = [one for one in self.under_way if not one.done()]
        columns = [_row(prompts, place) for place in range(len(prompts))]
        self.under_way += [self._prompts.submit(self._one, step, row) for row in columns]

    def _one(self, step: int, row: dict[str, Any]) -> None:
        """One prompt, whatever comes of it: verl waits for its status."""
        queue = import_module("transfer_queue")
        uid = str(row["uid"])
        status = "failure"
        try:
            queue.kv_put(key=uid, partition_id="train", tag={"status": "running"})
            self._put(queue, step, uid, row)
            status = "finished"
        except Exception:
            _log.exception("no rollouts of prompt %s", uid)
        queue.kv_put(key=uid, partition_id="train", tag={"status": status})

    def _put(self, queue: Any, step: int, uid: str, row: dict[str, Any]) -> None:
        if not row.pop("__do_sample__", True):
            raise Refused("greedy", "rollouts of a training run are sampled. Fix: another advantage estimator than REMAX.")
        n = int(row.pop("__rollout_n__", self.config.actor_rollout_ref.rollout.n))
        (group,) = self.groups.settled([Asked(row["raw_prompt"], n)], step)
        made = outputs(group, n, self.null, self.config.actor_rollout_ref.rollout.temperature)
        keys, fields, tags = [], [], []
        for session, rows in enumerate(made):
            for index, each in enumerate(rows):
                keys.append(f"{uid}_{session}_{index}")
                fields.append(_fields(each, {**row, "session_id": session}))
                tags.append(_tag(each, row["global_steps"]))
        as_tensors = import_module("verl.utils.tensordict_utils").list_of_dict_to_tensordict
        queue.kv_batch_put(keys=keys, partition_id="train", fields=as_tensors(fields), tags=tags)
        assert group is not None
        self._seam.gave(step, group, made)


class AgentLoop:
    """verl's seam for one sample, in a worker of verl's; `Manager` is the better one. In the file of `agent_loop_config_path`:

        - name: paddock
          _target_: paddock_rl.verl.AgentLoop
          seam: my_project.rollouts.seam        # made once per process: seam = AgentLoop.seam(Groups(...))

    One worker only (`rollout.agent.num_workers=1`), because a group is claimed whole; no validation, which verl does not tell it from training.
    """

    def __init__(self, trainer_config: Any, seam: str, null: Null = "left_out", **_: Any) -> None:
        config = trainer_config.config
        rollout, trainer = config.actor_rollout_ref.rollout, config.trainer
        found = [
            ("processes", rollout.agent.num_workers != 1, "a group would lie in several. Fix: rollout.agent.num_workers=1."),
            (
                "evaluation",
                trainer.val_before_train or trainer.test_freq > 0,
                "Fix: trainer.val_before_train=False and trainer.test_freq=-1; evaluate with run.eval.",
            ),
            ("choice", null not in get_args(Null), f"null is one of {get_args(Null)}."),
        ]
        for code, wrong, message in found:
            if wrong:
                raise Refused(code, message)
        module, _, name = seam.rpartition(".")
        self._seam: _Seam = getattr(import_module(module), name)
        self._n = int(rollout.n)
        self._temperature = float(rollout.temperature)
        self._null: Null = null

    @staticmethod
    def seam(groups: Groups, *, announce: bool = True, method: str | None = "verl") -> _Seam:
        """What all agent loops of a process share."""
        return _Seam(groups, announce=announce, method=method)

    async def run(self, sampling_params: Mapping[str, Any], **row: Any) -> list[Any]:
        """verl's `AgentLoopBase.run`: the outputs of one session, none where it has no number."""
        step, session = int(row["global_steps"]), int(row["session_id"])
        await asyncio.get_running_loop().run_in_executor(None, self._seam.at, step)
        group = await self._seam.groups.member((step, row["uid"]), Asked(row["raw_prompt"], self._n), step)
        made = outputs(group, self._n, self._null, self._temperature)
        if session == 0 and group is not None:
            self._seam.gave(step, group, made)
        return [_output(each) for each in made[session]]


def _output(fields: Mapping[str, Any]) -> Any:
    return import_module("verl.experimental.agent_loop.agent_loop").AgentLoopOutput(**fields)


def _fields(fields: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """What `AgentLoopWorkerTQ._agent_loop_postprocess` puts for an output."""
    torch = import_module("torch")
    found: dict[str, Any] = _output(fields).as_dict()
    ids = torch.cat([found["prompts"], found["responses"]])
    found.update({name: value for name, value in columns.items() if name not in ("agent_name", "multi_modal_data")})
    found |= {"loss_mask": found["response_mask"], "input_ids": ids, "position_ids": torch.arange(len(ids)), "multi_modal_inputs": {}}
    return found


def _tag(fields: Mapping[str, Any], global_steps: Any) -> dict[str, Any]:
    prompt, response, extra = len(fields["prompt_ids"]), len(fields["response_ids"]), fields["extra_fields"]
    return {
        "status": "success",
        "prompt_len": prompt,
        "response_len": response,
        "seq_len": prompt + response,
        "global_steps": global_steps,
        "min_global_steps": extra["min_global_steps"],
        "max_global_steps": extra["max_global_steps"],
    }


def _row(prompts: Any, place: int) -> dict[str, Any]:
    """The columns of one prompt, as plain as they were. A value that all prompts have is not a list."""
    found = {}
    for name in prompts.keys():
        value = prompts.get(name)
        whole = type(value).__name__ == "NonTensorData"
        each = value.data if whole else value[place]
        found[name] = each.data if type(each).__name__ == "NonTensorData" else each
    return found
