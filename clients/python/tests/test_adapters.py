"""The adapters of verl, slime, SkyRL and AReaL without those: what they ask of Paddock, what they give, what they refuse. test/real has verl's and SkyRL's
own classes; slime is in no package index, so its shapes are those of slime_fixture.py."""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import types
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from paddock_rl import Paddock, areal, skyrl, slime, verl
from paddock_rl.groups import Asked, Groups, MultiRow, NoNumber, Refused, Steps

from . import encoder, slime_fixture
from .stand_in import says
from .test_trl import Server

KNOWN = [1.0, 0.0, 0.5]
EACH = 5


def uneven() -> encoder.Header:
    """1, 0, a null verdict, one that its budget cut at 0.5, and one whose infrastructure failed before it called the model."""
    header = encoder.simple([1.0, 0.0, None, 0.5])
    header["members"][3]["end"] = header["rows"][3]["end"] = "budget"
    header["members"].append(encoder.member("r4", None, 4, out="infra", end="infra"))
    return header


def two_rows() -> encoder.Header:
    rows = [
        encoder.row("main", "r0", 1.0, [(3, 4)], rows_of_rollout=2),
        encoder.row("side", "r0", 1.0, [(2, 1)], rows_of_rollout=2, is_last=False),
        encoder.row("only", "r1", 0.0, [(3, 1)]),
    ]
    return encoder.round_of([encoder.member("r0", 1.0, 0), encoder.member("r1", 0.0, 1)], rows)


def grpo(numbers: list[float], own: float) -> float:
    """What all of them compute: by the sample's deviation."""
    return (own - statistics.fmean(numbers)) / (statistics.stdev(numbers) + 1e-6)


class Adapters(unittest.TestCase):
    def groups(self, server: Server, **more: Any) -> Groups:
        self.addCleanup(server.close)
        run = Paddock(server.url, "token", patience_s=0).run()
        self.addCleanup(run.close)
        groups = Groups(run, **{"task": lambda prompt: prompt, **more})
        self.addCleanup(groups.close)
        return groups

    def disposed(self, server: Server) -> list[tuple[str, str, int, Any]]:
        return [(each["row"], each["outcome"], each["step"], each["advantage"]) for each in server.disposed()]

    def phases(self, server: Server) -> list[tuple[int, str]]:
        return [(body["version"], body["phase"]) for body in server.bodies("POST /rl/v1/runs/run/policy")]


class TheClock(Adapters):
    def test_attaches_once_announces_each_step_and_says_of_earlier_steps_that_they_were_trained(self) -> None:
        server = Server(encoder.simple([1.0, 0.0]), encoder.simple([1.0, 1.0]))
        groups = self.groups(server)
        steps = Steps(groups.run, method="verl")
        for step in (4, 5):
            steps.at(step, step - 1, step - 1)
            steps.at(step, step - 1, step - 1)
            (group,) = groups.settled([Asked("one", 2)], step)
            assert group is not None
            steps.gave(step, group, ["row0", "row1"])
        self.assertEqual([body["resume_step"] for body in server.bodies("POST /rl/v1/runs/run/attach")], [3])
        self.assertEqual(self.phases(server), [(3, "pausing"), (3, "live"), (4, "pausing"), (4, "live")])
        worth = grpo([1.0, 0.0], 1.0)
        self.assertEqual(self.disposed(server), [("row0", "used", 4, worth), ("row1", "used", 4, -worth)])
        steps.checkpoint(5)
        self.assertEqual(self.disposed(server)[2:], [("row0", "no_signal", 5, 0.0), ("row1", "no_signal", 5, 0.0)])
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/checkpoint")[0]["step"], 5)
        steps.gave(6, group, ["row0"])
        steps.done(5)
        self.assertEqual(len(self.disposed(server)), 4)
        with self.assertRaisesRegex(Refused, "clock"):
            steps.at(4, 3, 3)

    def test_the_end_of_the_training_is_that_of_the_run(self) -> None:
        server = Server(encoder.simple([1.0, 0.0]))
        server.on("POST /rl/v1/runs/run/close", says({}))
        groups = self.groups(server)
        steps = Steps(groups.run)
        steps.at(0, 0, None)
        (group,) = groups.settled([Asked("one", 2)], 0)
        assert group is not None
        steps.gave(0, group, ["row0"])
        steps.finish()
        self.assertEqual([outcome for _, outcome, _, _ in self.disposed(server)], ["used", "skipped"])
        self.assertEqual(len(server.bodies("POST /rl/v1/runs/run/close")), 1)

    def test_weights_of_a_checkpoint_keep_their_name_and_others_can_announce(self) -> None:
        server = Server()
        run = self.groups(server).run
        Steps(run).at(8, 7, 7)
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/policy")[1]["label"], "seven")
        self.assertEqual(len(self.phases(server)), 2)

    def test_where_a_hook_announces_it_also_says_what_became_of_rows(self) -> None:
        server = Server(encoder.simple([1.0, 0.0]))
        groups = self.groups(server)
        steps = Steps(groups.run, announce=False)
        steps.at(8, 7, 7)
        (group,) = groups.settled([Asked("one", 2)], 8)
        assert group is not None
        steps.gave(8, group, ["row0"])
        steps.at(9, 8, 8)
        steps.done()
        self.assertEqual((self.phases(server), self.disposed(server)), ([], []))
        self.assertEqual(len(server.bodies("POST /rl/v1/runs/run/attach")), 1)


class SampleBySample(Adapters):
    def outside(self, *rounds: encoder.Header | None, **more: Any) -> tuple[Server, Groups]:
        server = Server(*rounds, inside=False)
        groups = self.groups(server, **{"task": None, "harness": lambda rollout: 1.0, **more})
        groups.run.attach()
        return server, groups

    def test_a_group_is_asked_for_once_and_all_of_its_samples_get_it(self) -> None:
        server, groups = self.outside(encoder.simple([1.0, 0.0]), encoder.simple([0.5, 0.5]))

        async def both() -> list[Any]:
            samples = [("b", "two"), ("a", "one"), ("a", "one"), ("b", "two")]
            return await asyncio.gather(*(groups.member(name, Asked(prompt, 2), 0) for name, prompt in samples))

        found = asyncio.run(both())
        self.assertIs(found[0], found[3])
        self.assertIs(found[1], found[2])
        self.assertNotEqual(found[0].group_id, found[1].group_id)
        self.assertEqual(len(server.bodies("POST /rl/v1/runs/run/groups")), 2)
        self.assertEqual(server.begun, 4)
        self.assertEqual([len(server.bodies(f"POST /rl/v1/groups/{name}/cancel")) for name in server.named], [1, 1])

    def test_a_failure_reaches_all_of_the_group_and_a_null_is_tried_again(self) -> None:
        answers = iter([None, 1.0, 1.0])
        server, groups = self.outside(encoder.simple([1.0, 1.0]), None, harness=lambda rollout: next(answers), spare=1)

        async def twice(name: str) -> list[Any]:
            return await asyncio.gather(*(groups.member(name, Asked(name, 2), 0) for _ in range(2)), return_exceptions=True)

        asyncio.run(twice("one"))
        self.assertEqual(server.begun, 3)
        # The harness has no more answers, so both end as infra and the group fails.
        self.assertEqual(asyncio.run(twice("two")), [None, None])

    def test_what_cannot_be_asked_for_is_told_to_every_sample(self) -> None:
        server, groups = self.outside(encoder.simple([1.0, 1.0]), harness=lambda rollout: {"end": "completed"})

        async def twice() -> list[Any]:
            return await asyncio.gather(*(groups.member("one", Asked("one", 2), 0) for _ in range(2)), return_exceptions=True)

        self.assertEqual([type(each) for each in asyncio.run(twice())], [Refused, Refused])


class Verl(Adapters):
    def outputs(self, header: encoder.Header, n: int, *more: Any) -> list[list[dict[str, Any]]]:
        server = Server(header)
        groups = self.groups(server)
        groups.run.attach()
        (group,) = groups.settled([Asked("one", n)], 0)
        return verl.outputs(group, n, *more)

    def test_what_has_no_number_is_in_no_mean(self) -> None:
        made = self.outputs(uneven(), EACH)
        self.assertEqual([[each["reward_score"] for each in rows] for rows in made], [[1.0], [0.0], [], [0.5], []])
        scores = [rows[0]["reward_score"] for rows in made if rows]
        self.assertEqual([grpo(scores, own) for own in scores], [grpo(KNOWN, own) for own in KNOWN])

    def test_or_the_mean_stands_for_it_and_nothing_of_it_trains(self) -> None:
        made = self.outputs(uneven(), EACH, "masked_mean")
        self.assertEqual([[each["reward_score"] for each in rows] for rows in made], [[1.0], [0.0], [0.5], [0.5], []])
        self.assertEqual(set(made[2][0]["response_mask"]), {0})
        with self.assertRaises(NoNumber):
            self.outputs(uneven(), EACH, "raise")

    def test_rollouts_that_never_began_have_no_number_either(self) -> None:
        self.assertEqual([len(rows) for rows in self.outputs(encoder.simple([1.0, 0.0]), 3)], [1, 1, 0])
        with self.assertRaises(NoNumber):
            self.outputs(encoder.simple([1.0, 0.0]), 3, "raise")

    def test_a_prompt_without_any_number_is_a_failure(self) -> None:
        with self.assertRaises(NoNumber):
            self.outputs(encoder.simple([None, None]), 2)
        with self.assertRaises(NoNumber):
            verl.outputs(None, 2)

    def test_rows_that_train_nothing_never_stand_last_where_verl_reads_the_advantage(self) -> None:
        header = two_rows()
        header["rows"][0]["arrays"]["loss_mask"] = [0] * 7
        made = self.outputs(header, 2)
        self.assertEqual([each["extra_fields"]["row_id"] for each in made[0]], ["side"])
        self.assertEqual([each["extra_fields"]["row_id"] for each in self.outputs(two_rows(), 2)[0]], ["side", "main"])

    def test_pictures_and_other_temperatures_are_refused(self) -> None:
        header = encoder.simple([1.0, 0.0])
        with self.assertRaisesRegex(Refused, "temperature"):
            self.outputs(header, 2, "left_out", 0.5)
        header["rows"][0]["media"] = [{"kind": "image"}]
        with self.assertRaisesRegex(Refused, "media"):
            self.outputs(header, 2)

    def test_the_agent_loop_refuses_what_would_split_a_group_or_be_measured(self) -> None:
        def config(workers: int = 1, before: bool = False, every: int = -1) -> Any:
            rollout = SimpleNamespace(n=2, temperature=1.0, agent=SimpleNamespace(num_workers=workers))
            trainer = SimpleNamespace(val_before_train=before, test_freq=every)
            return SimpleNamespace(config=SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout), trainer=trainer))

        for settings, code in ((config(workers=8), "processes"), (config(before=True), "evaluation"), (config(every=5), "evaluation")):
            with self.assertRaisesRegex(Refused, code):
                verl.AgentLoop(settings, "os.name")

    def test_the_manager_refuses_weights_that_move_while_rollouts_go_on(self) -> None:
        config = SimpleNamespace(trainer=SimpleNamespace(v1=SimpleNamespace(trainer_mode="colocate_async")))
        with self.assertRaisesRegex(Refused, "asynchronous"):
            verl.Manager.create(config)


class Slime(Adapters):
    def setUp(self) -> None:
        # What is imported by name, without slime.
        base = types.ModuleType("slime.rollout.base_types")
        hooks = types.ModuleType("slime.rollout.sample_hooks")
        base.RolloutFnTrainOutput = slime_fixture.RolloutFnTrainOutput  # type: ignore[attr-defined]
        hooks._current_rollout_id = 0  # type: ignore[attr-defined]
        fakes = {"slime.rollout.base_types": base, "slime.rollout.sample_hooks": hooks}
        patched = mock.patch.dict(sys.modules, fakes)
        patched.start()
        self.addCleanup(patched.stop)

    def rollouts(self, server: Server, **more: Any) -> slime.Rollouts:
        return slime.Rollouts(self.groups(server), **more)

    def made(self, header: encoder.Header, n: int, args: Any = None, **more: Any) -> tuple[Any, list[Any]]:
        args = args or slime_fixture.arguments(n, mine=True)
        rollouts = self.rollouts(Server(header), **more)
        (found,) = rollouts.generate_rollout(args, 0, slime_fixture.Source(args, ["one"])).samples
        return args, slime_fixture.flat([found])

    def test_a_batch_comes_back_as_slimes_samples(self) -> None:
        args = slime_fixture.arguments(2, batch=2)
        server = Server(encoder.simple([1.0, 0.0]), encoder.simple([0.5, 0.25]))
        rollouts = self.rollouts(server, method="slime")
        source = slime_fixture.Source(args, ["one", "two"])
        first, second = rollouts.generate_rollout(args, 0, source).samples
        self.assertEqual([sample.reward for sample in first + second], [1.0, 0.0, 0.5, 0.25])
        self.assertEqual([(each.group_index, each.index, each.rollout_id) for each in second], [(1, 2, 2), (1, 3, 3)])
        self.assertEqual((second[0].tokens, second[0].response_length), ([100, 101, 102, 103, 104, 105, 106, 107], 5))
        self.assertEqual((second[0].loss_mask, second[0].weight_versions), ([1, 1, 0, 0, 1], ["3", "3"]))
        self.assertEqual([round(each, 3) for each in second[0].rollout_log_probs], [-0.003, -0.004, 0.0, 0.0, -0.007])
        self.assertEqual((second[0].status, second[0].prompt, second[0].label), (slime_fixture.Sample.Status.COMPLETED, "two", "of two"))
        slime_fixture.check(args, [first, second])
        self.assertEqual(self.disposed(server), [])
        rollouts.steps.done()
        self.assertEqual([step for _, _, step, _ in self.disposed(server)], [0, 0, 0, 0])

    def test_uneven_groups_have_the_baseline_of_those_with_a_number(self) -> None:
        args, samples = self.made(uneven(), EACH, null="left_out")
        self.assertEqual([sample.remove_sample for sample in samples], [False, False, True, False, True])
        self.assertEqual([sample.status.value for sample in samples], ["completed", "completed", "aborted", "truncated", "aborted"])
        raw, normalised = slime.rewards(args, samples)
        wanted = [grpo(KNOWN, 1.0), grpo(KNOWN, 0.0), 0.0, grpo(KNOWN, 0.5), 0.0]
        for found, each in zip(normalised, wanted, strict=True):
            self.assertAlmostEqual(found, each)
        self.assertNotIn(math.nan, raw)
        slime_fixture.check(args, samples)

    def test_slimes_own_baseline_has_the_mean_of_those_with_a_number(self) -> None:
        args, samples = self.made(uneven(), EACH, slime_fixture.arguments(EACH), null="masked_mean")
        self.assertEqual(set(samples[2].loss_mask), {0})
        own = slime_fixture.normalised(args, [sample.reward for sample in samples])
        self.assertAlmostEqual(statistics.fmean(sample.reward for sample in samples), statistics.fmean(KNOWN))
        # The deviation has two numbers more, which README says.
        self.assertAlmostEqual(own[0] * (statistics.stdev([*KNOWN, 0.5, 0.5]) + 1e-6), 1.0 - statistics.fmean(KNOWN))
        with self.assertRaises(NoNumber):
            self.made(uneven(), EACH)

    def test_a_rollout_of_several_rows_counts_once_in_its_baseline(self) -> None:
        args, samples = self.made(two_rows(), 2, several="fan_out")
        self.assertEqual([(each.rollout_id, each.metadata["row"]) for each in samples], [(0, "side"), (0, "main"), (1, "only")])
        slime_fixture.check(args, samples)
        _, normalised = slime.rewards(args, samples)
        worth = grpo([1.0, 0.0], 1.0)
        for found, each in zip(normalised, [worth, worth, -worth], strict=True):
            self.assertAlmostEqual(found, each)
        with self.assertRaises(MultiRow):
            self.made(two_rows(), 2)
        _, samples = self.made(two_rows(), 2, several="main_chain")
        self.assertEqual([each.metadata["row"] for each in samples], ["main", "only"])

    def test_rewards_are_of_each_group_and_follow_slimes_options(self) -> None:
        def sample(group: int, index: int, reward: float) -> Any:
            return slime_fixture.Sample(group_index=group, index=index, rollout_id=index, reward=reward)

        samples = [sample(0, 0, 1.0), sample(0, 1, 0.0), sample(1, 2, 5.0), sample(1, 3, 4.0), sample(2, 4, 9.0)]
        args = slime_fixture.arguments(2)
        args.grpo_std_normalization = False
        self.assertEqual(slime.rewards(args, samples)[1], [0.5, -0.5, 0.5, -0.5, 0.0])
        args.advantage_estimator = "ppo"
        self.assertEqual(slime.rewards(args, samples)[1], [1.0, 0.0, 5.0, 4.0, 9.0])

    def test_sample_by_sample_it_is_the_same(self) -> None:
        args = slime_fixture.arguments(EACH, mine=True)
        server = Server(uneven())
        rollouts = self.rollouts(server, null="left_out")
        (group,) = slime_fixture.Source(args, ["one"]).get_samples(1)

        async def all_of_it() -> list[Any]:
            return await asyncio.gather(*(rollouts.generate(args, sample, {}) for sample in group))

        samples = asyncio.run(all_of_it())
        self.assertEqual([(each.index, each.reward, each.remove_sample) for each in samples], [
            (0, 1.0, False), (1, 0.0, False), (2, 0.5, True), (3, 0.5, False), (4, 0.5, True),
        ])
        rollouts.steps.done()
        self.assertEqual(sorted(row for row, outcome, _, _ in self.disposed(server) if outcome == "used"), ["row0", "row1", "row3"])

    def test_what_would_train_something_else_is_refused(self) -> None:
        rollouts = self.rollouts(Server(), null="left_out")
        args = slime_fixture.arguments(2)
        for settings, more, code in (
            (args, {"evaluation": True}, "evaluation"),
            (args, {}, "rewards"),
            (slime_fixture.arguments(2, mine=True, group_rm=True), {}, "group_rm"),
        ):
            with self.assertRaisesRegex(Refused, code):
                rollouts.generate_rollout(settings, 0, None, **more)
        with self.assertRaisesRegex(Refused, "over_sampling"):
            asyncio.run(rollouts.generate(slime_fixture.arguments(2, mine=True, partial_rollout=True), None, {}))


class SkyRl(Adapters):
    def batch(self, n: int, *, phase: str = "train", prompts: tuple[str, ...] = ("one",), **more: Any) -> dict[str, Any]:
        ids = [SimpleNamespace(instance_id=prompt, repetition_id=place) for prompt in prompts for place in range(n)]
        about = SimpleNamespace(global_step=1, training_phase=phase)
        sampling = {"temperature": 1.0}
        asked = {"prompts": [one.instance_id for one in ids], "trajectory_ids": ids, "batch_metadata": about, "sampling_params": sampling}
        return {**asked, **more}

    def generated(self, n: int, header: encoder.Header, **more: Any) -> dict[str, Any]:
        return asyncio.run(skyrl.Generator(self.groups(Server(header)), **more).generate(self.batch(n)))

    def test_entries_are_in_the_order_of_prompts(self) -> None:
        server = Server(encoder.simple([1.0, 0.0]), encoder.simple([0.5, 0.25]))
        generator = skyrl.Generator(self.groups(server), method="skyrl")
        batch = self.batch(2, prompts=("one", "two"))
        found = asyncio.run(generator.generate(batch))
        self.assertEqual(found["rewards"], [1.0, 0.0, 0.5, 0.25])
        self.assertEqual(found["trajectory_ids"], batch["trajectory_ids"])
        self.assertEqual((found["prompt_token_ids"][2], found["response_ids"][2]), ([100, 101, 102], [103, 104, 105, 106, 107]))
        self.assertEqual((found["loss_masks"][2], found["is_last_step"]), ([1, 1, 0, 0, 1], None))
        self.assertEqual(self.phases(server), [(0, "pausing"), (0, "live")])
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/attach")[0]["resume_step"], None)

    def test_uneven_groups_keep_the_mean_of_those_with_a_number(self) -> None:
        server = Server(uneven())
        generator = skyrl.Generator(self.groups(server), null="masked_mean")
        found = asyncio.run(generator.generate(self.batch(EACH)))
        generator.steps.done()
        outcomes = [(row, outcome) for row, outcome, _, _ in self.disposed(server)]
        self.assertEqual(outcomes, [("row0", "used"), ("row1", "used"), ("row2", "skipped"), ("row3", "used")])
        self.assertEqual(found["rewards"], [1.0, 0.0, 0.5, 0.5, 0.5])
        self.assertAlmostEqual(statistics.fmean(found["rewards"]), statistics.fmean(KNOWN))
        self.assertEqual([sum(mask) for mask in found["loss_masks"]], [3, 3, 0, 3, 0])
        self.assertEqual(found["stop_reasons"], ["stop", "stop", "stop", "length", "stop"])
        for header in (uneven(), encoder.simple([None, None])):
            with self.assertRaises(NoNumber):
                self.generated(EACH, header)

    def test_several_rows_are_steps_or_refused_or_the_main_chain(self) -> None:
        found = self.generated(2, two_rows(), several="step_wise")
        self.assertEqual((found["rewards"], found["is_last_step"]), ([0.0, 1.0, 0.0], [False, True, True]))
        self.assertEqual([each.repetition_id for each in found["trajectory_ids"]], [0, 0, 1])
        with self.assertRaises(MultiRow):
            self.generated(2, two_rows())
        self.assertEqual(self.generated(2, two_rows(), several="main_chain")["rollout_metrics"], {"paddock/lost_tokens": 1})

    def test_what_would_train_something_else_is_refused(self) -> None:
        generator = skyrl.Generator(self.groups(Server()))
        apart = self.batch(1, prompts=("one", "two", "one"))
        warm = self.batch(2, sampling_params={"temperature": 0.5})
        for batch, code in ((self.batch(2, phase="eval"), "evaluation"), (self.batch(2, trajectory_ids=None), "no_ids"), (apart, "groups")):
            with self.assertRaisesRegex(Refused, code):
                asyncio.run(generator.generate(batch))
        with self.assertRaisesRegex(Refused, "temperature"):
            asyncio.run(skyrl.Generator(self.groups(Server(encoder.simple([1.0, 0.0])))).generate(warm))


class Areal(Adapters):
    """`GroupedRolloutWorkflow` of areal 1.0.4 (areal/infra/remote_inf_engine.py 84-118) begins `n` episodes of one `data` and drops those that are None."""

    def setUp(self) -> None:
        torch = types.ModuleType("torch")
        torch.tensor = lambda value, dtype: (value, dtype)  # type: ignore[attr-defined]
        for name in ("int32", "float32", "bool"):
            setattr(torch, name, name)
        patched = mock.patch.dict(sys.modules, {"torch": torch})
        patched.start()
        self.addCleanup(patched.stop)

    def episodes(self, workflow: areal.Workflow, n: int, version: int = 0, times: int = 1) -> list[Any]:
        engine = SimpleNamespace(get_version=lambda: version)
        data = {"messages": "one"}

        async def grouped() -> list[Any]:
            rows = [workflow.arun_episode(engine, data) for _ in range(times * n)]
            return await asyncio.gather(*rows)

        return asyncio.run(grouped())

    def test_a_rollout_without_a_number_is_rejected_and_the_others_are_whole(self) -> None:
        server = Server(uneven())
        workflow = areal.Workflow(self.groups(server), EACH)
        found = self.episodes(workflow, EACH)
        rewards = [None if each is None else each["rewards"] for each in found]
        self.assertEqual(rewards, [([1.0], "float32"), ([0.0], "float32"), None, ([0.5], "float32"), None])
        self.assertEqual(found[3]["input_ids"], ([[100, 101, 102, 103, 104, 105, 106, 107]], "int32"))
        self.assertEqual(found[3]["loss_mask"], ([[0, 0, 0, 1, 1, 0, 0, 1]], "int32"))
        self.assertEqual(found[3]["versions"], ([[-1, -1, -1, 3, 3, -1, -1, 3]], "int32"))
        self.assertEqual(set(found[3]), {"input_ids", "loss_mask", "logprobs", "versions", "attention_mask", "rewards"})
        numbers = [each["rewards"][0][0] for each in found if each is not None]
        self.assertEqual([grpo(numbers, own) for own in numbers], [grpo(KNOWN, own) for own in KNOWN])
        workflow.steps.done()
        used = [row for row, outcome, _, _ in self.disposed(server) if outcome == "used"]
        self.assertEqual(used, ["row0", "row1", "row3"])

    def test_one_prompt_twice_at_once_is_two_groups(self) -> None:
        server = Server(encoder.simple([1.0, 0.0]), encoder.simple([0.5, 0.25]))
        found = self.episodes(areal.Workflow(self.groups(server), 2), 2, times=2)
        self.assertEqual(sorted(each["rewards"][0][0] for each in found), [0.0, 0.25, 0.5, 1.0])
        self.assertEqual(len(server.named), 2)

    def test_a_group_without_any_number_is_rejected_whole(self) -> None:
        self.assertEqual(self.episodes(areal.Workflow(self.groups(Server(encoder.simple([None, None]))), 2), 2), [None, None])
        self.assertEqual(self.episodes(areal.Workflow(self.groups(Server(None)), 2), 2), [None, None])

    def test_versions_are_steps_and_several_rows_are_refused_or_the_main_chain(self) -> None:
        server = Server(two_rows())
        workflow = areal.Workflow(self.groups(server), 2, several="main_chain")
        first, _ = self.episodes(workflow, 2, version=4)
        self.assertEqual((len(first["input_ids"][0][0]), workflow.lost_tokens), (7, 1))
        self.assertEqual(self.phases(server), [(4, "pausing"), (4, "live")])
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/attach")[0]["resume_step"], 3)
        with self.assertRaises(MultiRow):
            self.episodes(areal.Workflow(self.groups(Server(two_rows())), 2), 2)

    def test_a_rollout_that_never_called_the_model_keeps_its_number_and_trains_nothing(self) -> None:
        header = encoder.simple([1.0, 0.0])
        header["rows"].pop()
        _, second = self.episodes(areal.Workflow(self.groups(Server(header)), 2, pad_token_id=9), 2)
        self.assertEqual((second["input_ids"][0], second["loss_mask"][0], second["rewards"][0]), ([[9, 9]], [[0, 0]], [0.0]))


if __name__ == "__main__":
    unittest.main()
