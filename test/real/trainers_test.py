"""`paddock_rl.verl`, `.skyrl`, `.areal` and `.slime` on a real `paddock serve`, with tiny_engine.py: put through the own classes of verl, SkyRL and AReaL.

Truth is what the engine noted of each call and what the harness answered. Advantages are those that verl's and SkyRL's functions compute of what they
were given, against a computation here. TransferQueue, which needs Ray's processes, is a dict.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import runpy
import statistics
import sys
import typing
import unittest
import warnings
from collections import Counter
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import typing_extensions

# SkyRL asks for Python 3.12, whose TypedDict pydantic takes.
typing.TypedDict = typing_extensions.TypedDict  # type: ignore[misc]
warnings.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real", "examples/train")]

import numpy  # noqa: E402
import torch  # noqa: E402
import transfer_queue  # noqa: E402
from areal.infra.remote_inf_engine import GroupedRolloutWorkflow  # noqa: E402
from areal.infra.workflow_executor import check_trajectory_format  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from paddock_rl import areal, skyrl, verl  # noqa: E402
from paddock_rl.groups import Groups, Refused  # noqa: E402
from served import EACH, FATES, Script, Served, grpo  # noqa: E402
from skyrl.backends.skyrl_train.utils.ppo_utils import compute_grpo_outcome_advantage  # noqa: E402
from skyrl.train.generators.utils import prepare_generator_input  # noqa: E402
from skyrl.train.utils.trainer_utils import validate_generator_output  # noqa: E402
from tensordict import NonTensorStack, TensorDict  # noqa: E402
from tests import slime_fixture  # noqa: E402
from verl.experimental.agent_loop import agent_loop  # noqa: E402
from verl.protocol import DataProto  # noqa: E402
from verl.trainer.ppo.v1 import agent_loop_tq  # noqa: E402
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: E402
from verl.utils import tensordict_utils  # noqa: E402

torch.set_num_threads(2)
class Queue:
    """What is put into TransferQueue: rows and tags by key, and each status that a prompt has had."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.tags: dict[str, dict[str, Any]] = {}
        self.states: dict[str, list[str]] = {}
        transfer_queue.kv_put = self.put
        transfer_queue.kv_batch_put = self.batch_put
        transfer_queue.async_kv_put = self.later(self.put)
        transfer_queue.async_kv_batch_put = self.later(self.batch_put)

    def put(self, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        assert partition_id == "train"
        self.states.setdefault(key, []).append(tag["status"])

    def batch_put(self, keys: list[str], partition_id: str, fields: Any, tags: list[dict[str, Any]]) -> None:
        assert partition_id == "train" and len(keys) == len(fields) == len(tags)
        self.tags.update(zip(keys, tags, strict=True))
        for place, key in enumerate(keys):
            self.rows[key] = {name: fields[name][place] for name in fields.keys()}

    def later(self, put: Any) -> Any:
        async def call(**asked: Any) -> None:
            put(**asked)

        return call

    def advantages(self) -> dict[str, float]:
        """By key, as verl's trainer computes them of all rows."""
        keys = sorted(self.rows)
        pad = torch.nn.utils.rnn.pad_sequence
        columns = {name: pad([self.rows[key][name] for key in keys], batch_first=True) for name in ("response_mask", "rm_scores")}
        uids = [str(self.rows[key]["uid"]) for key in keys]
        data = DataProto.from_dict(columns, non_tensors={"uid": numpy.array(uids, dtype=object)})
        data.batch["token_level_rewards"] = data.batch["rm_scores"]
        found = compute_advantage_for_multi_trajectories(data, keys, adv_estimator="grpo").batch["advantages"]
        trained = [row[mask.bool()] for row, mask in zip(found, data.batch["response_mask"], strict=True)]
        assert all(len(set(row.tolist())) == 1 for row in trained)
        return {key: float(row[0]) for key, row in zip(keys, trained, strict=True)}


def config(n: int, mode: str = "sync", **more: Any) -> Any:
    """What is read of verl's, and of its defaults."""
    rollout = {"n": n, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "calculate_log_probs": True, "agent": {"num_workers": 1}}
    trainer = {"v1": {"trainer_mode": mode}, "val_before_train": False, "test_freq": -1}
    return OmegaConf.create({"actor_rollout_ref": {"rollout": {**rollout, **more}}, "trainer": trainer, "data": {}})


def prompts_of(step: int, **rows: str) -> Any:
    columns = {"uid": NonTensorStack(*rows), "raw_prompt": NonTensorStack(*rows.values()), "data_source": NonTensorStack(*["d"] * len(rows))}
    found = TensorDict(columns, batch_size=[len(rows)])
    tensordict_utils.assign_non_tensor_data(found, "global_steps", step)
    return found


SEAMS: dict[str, Any] = {}


class Trainers(Served):
    def manager(self, script: Script, **more: Any) -> verl.Manager:
        opened = self.groups(script)

        class Rollouts(verl.Manager):
            def open(self) -> Groups:
                return opened

        for name, value in more.items():
            setattr(Rollouts, name, value)
        return Rollouts.create(config=config(EACH))

    def test_verl_has_exactly_what_was_recorded_and_its_baseline_is_of_those_with_a_number(self) -> None:
        queue, script = Queue(), Script()
        manager = self.manager(script)
        manager.generate_sequences(prompts_of(1, one="w5 w6", two="w9 w8 w7"))
        wait(manager.under_way)
        self.assertEqual(queue.states, {"one": ["running", "finished"], "two": ["running", "finished"]})
        sessions = sorted({key.rsplit("_", 1)[0] for key in queue.rows})
        self.assertEqual(sessions, [f"{uid}_{session}" for uid in ("one", "two") for session in (0, 1, 3)])
        self.assertEqual(sorted(key for key in queue.rows if "_1_" in key), ["one_1_0", "one_1_1", "two_1_0", "two_1_1"])
        numbers = [1.0, 0.75, 0.25]
        for key, found in queue.advantages().items():
            self.assertAlmostEqual(found, grpo(numbers, 1.0 - int(key.split("_")[1]) / 4), 5)
        for key, row in queue.rows.items():
            self.assertEqual((str(row["raw_prompt"]), row["session_id"]), ("w5 w6" if key.startswith("one") else "w9 w8 w7", int(key.split("_")[1])))
            self.assertEqual((queue.tags[key]["min_global_steps"], queue.tags[key]["max_global_steps"]), (0, 0))
            if "_1_" in key:
                continue
            ids, mask, logprobs = self.spoken(row["extra_fields"]["rollout_id"])
            prompt = len(row["prompts"])
            self.assertEqual(row["input_ids"].tolist(), ids)
            self.assertEqual(row["response_mask"].tolist(), mask[prompt:])
            self.assertTrue(torch.allclose(row["rollout_log_probs"], torch.tensor(logprobs[prompt:])))
        self.assertEqual(self.outcomes(manager.groups), Counter(claimed=2))
        manager.generate_sequences(prompts_of(2, three="w5 w5"))
        wait(manager.under_way)
        self.assertEqual(self.outcomes(manager.groups), Counter(done=2, claimed=1))
        self.assertEqual(queue.tags["three_0_0"]["min_global_steps"], 1)
        manager.steps.finish()
        self.assertEqual(self.outcomes(manager.groups), Counter(done=3))

    def test_verl_has_a_failed_group_where_nobody_has_a_number_or_a_null_is_not_wanted(self) -> None:
        for script, null in ((Script(("null", "infra", "null", "infra", "null")), "left_out"), (Script(), "raise")):
            queue = Queue()
            manager = self.manager(script, null=null)
            with mock.patch.object(verl, "_log") as log:
                manager.generate_sequences(prompts_of(1, one="w5 w6"))
                wait(manager.under_way)
            self.assertEqual((queue.states, queue.rows), ({"one": ["running", "failure"]}, {}))
            log.exception.assert_called_once()
            manager.steps.finish()

    def test_verl_is_refused_what_it_would_measure_or_train_otherwise(self) -> None:
        manager = self.manager(Script())
        validation = prompts_of(1, one="w5 w6")
        tensordict_utils.assign_non_tensor_data(validation, "validate", True)
        with self.assertRaisesRegex(Refused, "evaluation"):
            manager.generate_sequences(validation)
        manager.steps.finish()

    def test_verls_own_worker_runs_the_agent_loop(self) -> None:
        queue, script = Queue(), Script()
        groups = self.groups(script)
        SEAMS["seam"] = verl.AgentLoop.seam(groups)
        sys.modules["seams_of_a_project"] = SimpleNamespace(**SEAMS)  # type: ignore[assignment]
        entry = {"_target_": "paddock_rl.verl.AgentLoop", "seam": "seams_of_a_project.seam"}
        agent_loop._agent_loop_registry["paddock"] = entry
        # The class behind Ray's actor, without its engine, tokenizer and reward workers.
        kind = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class
        worker = kind.__new__(kind)
        worker.config = config(EACH)
        nothing = ("llm_client", "tokenizer", "processor", "dataset_cls", "hf_model_type", "reward_loop_worker_handles")
        for name in nothing:
            setattr(worker, name, None)
        worker.distillation_enabled, worker.tools = False, []
        row = {"uid": "one", "raw_prompt": "w5 w6", "global_steps": 1, "agent_name": "paddock", "index": 0}
        trajectory = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": False}
        asyncio.run(worker._run_prompt(row, {}, trajectory))
        self.assertEqual(queue.states, {"one": ["running", "finished"]})
        self.assertEqual(sorted(queue.rows), ["one_0_0", "one_1_0", "one_1_1", "one_3_0"])
        for key, found in queue.advantages().items():
            self.assertAlmostEqual(found, grpo([1.0, 0.75, 0.25], 1.0 - int(key.split("_")[1]) / 4), 5)
        SEAMS["seam"].steps.finish()
        self.assertEqual(self.outcomes(groups), Counter(done=1))
        self.same_fields_as_the_manager(queue.rows["one_0_0"], queue.tags["one_0_0"])

    def same_fields_as_the_manager(self, row: dict[str, Any], tag: dict[str, Any]) -> None:
        queue = Queue()
        manager = self.manager(Script())
        manager.generate_sequences(prompts_of(1, one="w5 w6"))
        wait(manager.under_way)
        own = queue.rows["one_0_0"]
        self.assertEqual(set(own) - {"data_source"}, set(row) - {"index"})
        self.assertEqual(set(queue.tags["one_0_0"]), set(tag))
        for name in ("input_ids", "position_ids", "loss_mask", "prompts", "responses", "response_mask", "rollout_log_probs", "rm_scores"):
            self.assertEqual(own[name].dtype, row[name].dtype, name)
        for each in (own, row):
            self.assertEqual(each["loss_mask"].tolist(), each["response_mask"].tolist())
            self.assertEqual(each["position_ids"].tolist(), list(range(len(each["input_ids"]))))
            self.assertEqual((each["rm_scores"].tolist()[-1], each["rm_scores"].sum()), (1.0, 1.0))

    def test_skyrl_takes_it_and_its_baseline_is_of_those_with_a_number(self) -> None:
        for several, fates in (("refuse", ("number", "number", "null", "budget", "infra")), ("step_wise", FATES)):
            script = Script(fates)
            groups = self.groups(script)
            generator = skyrl.Generator(groups, null="masked_mean", several=several)
            row = {"prompt": "w5 w6", "env_class": None, "env_extras": {}, "uid": "one"}
            batch, uids = prepare_generator_input([row], EACH, {"temperature": 1.0}, "none", "train", 1)
            output = asyncio.run(generator.generate(batch))
            validate_generator_output(EACH, output, step_wise=several == "step_wise")
            last = output["is_last_step"] or [True] * EACH
            scores = [reward for reward, is_last in zip(output["rewards"], last, strict=True) if is_last]
            masks = [mask for mask, is_last in zip(output["loss_masks"], last, strict=True) if is_last]
            own = torch.tensor(scores).unsqueeze(-1)
            worth, _ = compute_grpo_outcome_advantage(own.clone(), torch.ones_like(own), uids, 1e-6)
            numbers = [1.0, 0.75, 0.25]
            mean = statistics.fmean(numbers)
            self.assertAlmostEqual(statistics.fmean(scores), mean, 6)
            # A mean that stands in makes the deviation smaller, and leaves signs and the order as they are.
            deviation = statistics.stdev([*numbers, mean, mean]) + 1e-6
            for found, number, mask in zip(worth, scores, masks, strict=True):
                self.assertAlmostEqual(float(found), (number - mean) / deviation, 5)
                self.assertEqual(any(mask), number != scores[2])
            if several == "refuse":
                self.same_as_spoken(script, output)
            generator.steps.finish()
            self.assertEqual(self.outcomes(groups), Counter(done=1))

    def same_as_spoken(self, script: Script, output: dict[str, Any]) -> None:
        for rollout, reward in script.rewards.items():
            place = output["rewards"].index(reward)
            ids, mask, logprobs = self.spoken(rollout)
            prompt = len(output["prompt_token_ids"][place])
            self.assertEqual(output["prompt_token_ids"][place] + output["response_ids"][place], ids)
            self.assertEqual(output["loss_masks"][place], mask[prompt:])
            for found, own in zip(output["rollout_logprobs"][place], logprobs[prompt:], strict=True):
                self.assertAlmostEqual(found, own, 5)

    def test_areals_group_is_of_those_with_a_number(self) -> None:
        script = Script(("number", "number", "null", "budget", "infra"))
        groups = self.groups(script)
        workflow = areal.Workflow(groups, EACH)
        grouped = GroupedRolloutWorkflow(workflow, EACH, logging.getLogger("areal"))
        engine = SimpleNamespace(get_version=lambda: 0)
        found = asyncio.run(grouped.arun_episode(engine, {"messages": "w5 w6"}))
        self.assertTrue(check_trajectory_format(found, batch_size=3))
        self.assertEqual(found["rewards"].tolist(), [1.0, 0.75, 0.25])
        for rollout, reward in script.rewards.items():
            place = found["rewards"].tolist().index(reward)
            there = found["attention_mask"][place].bool()
            ids, mask, logprobs = self.spoken(rollout)
            self.assertEqual(found["input_ids"][place][there].tolist(), ids)
            self.assertEqual(found["loss_mask"][place][there].tolist(), mask)
            self.assertEqual(found["versions"][place][there].tolist(), [0 if bit else -1 for bit in mask])
            self.assertTrue(torch.allclose(found["logprobs"][place][there], torch.tensor(logprobs)))
        workflow.steps.finish()
        self.assertEqual(self.outcomes(groups), Counter(done=1))

    def test_the_quickstarts_run_as_far_as_a_cpu_can(self) -> None:
        for name in ("verl", "skyrl"):
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                runpy.run_path(str(ROOT / f"examples/train/quickstart_{name}.py"), run_name="__main__")
            self.assertRegex(told.getvalue(), r"advantages \[-?\d")

    def test_the_quickstart_of_slime_gives_samples_and_their_rewards(self) -> None:
        sys.modules["slime.rollout.base_types"] = SimpleNamespace(RolloutFnTrainOutput=slime_fixture.RolloutFnTrainOutput)  # type: ignore[assignment]
        import quickstart_slime

        args = slime_fixture.arguments(4, mine=True)
        output = quickstart_slime.generate_rollout(args, 0, slime_fixture.Source(args, ["w5 w6"]))
        samples = slime_fixture.flat(output.samples)
        slime_fixture.check(args, samples)
        raw, worth = quickstart_slime.normalise(args, samples)
        self.assertEqual(len(samples), 4)
        wanted = [grpo(raw, own) if len(set(raw)) > 1 else 0.0 for own in raw]
        for found, own in zip(worth, wanted, strict=True):
            self.assertAlmostEqual(found, own, 5)
        quickstart_slime.rollouts.steps.finish()


if __name__ == "__main__":
    unittest.main()
