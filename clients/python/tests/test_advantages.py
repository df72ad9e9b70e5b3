import math
import random
import statistics
import unittest
from collections.abc import Sequence
from typing import Any

from paddock_rl import PRESETS, Group, OutcomeStopped, advantages, decode, row_scales

from . import encoder


def round_of(rewards: Sequence[float | None], **more: Any) -> Group:
    header = encoder.simple(list(rewards))
    for index, keys in more.get("members", {}).items():
        header["members"][index].update(keys)
    return decode(encoder.encode({**header, **more.get("head", {})}))


def close(test: unittest.TestCase, found: Sequence[float | None], wanted: Sequence[float | None]) -> None:
    test.assertEqual(len(found), len(wanted))
    for one, other in zip(found, wanted, strict=True):
        if one is None or other is None:
            test.assertEqual(one, other)
        else:
            test.assertAlmostEqual(one, other, places=9)


class Numbers(unittest.TestCase):
    def test_equal_what_the_statistics_module_says(self) -> None:
        for seed in range(200):
            dice = random.Random(seed)
            rewards: list[float | None] = [dice.choice([None, dice.uniform(-5, 5)]) for _ in range(dice.randrange(2, 9))]
            known = [reward for reward in rewards if reward is not None]
            if len(known) < 2:
                continue
            group, mean = round_of(rewards), statistics.fmean(known)

            def of(values: dict[float, float], rewards: list[float | None] = rewards) -> list[float | None]:
                return [None if reward is None else values[reward] for reward in rewards]

            for std, deviation in (("sample", statistics.stdev(known)), ("population", statistics.pstdev(known))):
                wanted = of({reward: (reward - mean) / (deviation + 1e-3) for reward in known})
                close(self, list(advantages(group, "grpo", std=std, eps=1e-3).by_rollout.values()), wanted)
            close(self, list(advantages(group, "mean").by_rollout.values()), of({reward: reward - mean for reward in known}))
            others = {reward: reward - (sum(known) - reward) / (len(known) - 1) for reward in known}
            close(self, list(advantages(group, "rloo").by_rollout.values()), of(others))

    def test_leave_one_out_does_not_count_who_has_no_number(self) -> None:
        # The published case of a masked second member: [.667, -.333, -.333], and not [.5, -.5, -.5].
        found = advantages(round_of([1.0, None, 0.0, 0.0]), "mean")
        close(self, list(found.by_rollout.values()), [2 / 3, None, -1 / 3, -1 / 3])

    def test_presets_are_what_their_trainers_do(self) -> None:
        rewards = [1.0, 0.0, 0.0, 0.5]
        mean, deviation = statistics.fmean(rewards), statistics.stdev(rewards)
        for name, eps in (("trl", 1e-4), ("verl", 1e-6), ("slime", 1e-6), ("skyrl", 1e-6), ("openrlhf", 1e-9)):
            wanted = [(reward - mean) / (deviation + eps) for reward in rewards]
            close(self, list(advantages(round_of(rewards), name).by_rollout.values()), wanted)
        close(self, list(advantages(round_of(rewards), "tinker").by_rollout.values()), [reward - mean for reward in rewards])
        self.assertEqual(set(PRESETS), {"trl", "verl", "slime", "skyrl", "openrlhf", "tinker"})

    def test_nothing_to_compare_is_no_signal(self) -> None:
        for rewards in ([1.0], [0.3, 0.3, 0.3], [0.1 + 0.2, 0.3], [None, 0.7], [0.0, 0.0]):
            for method in ("grpo", "rloo", "mean"):
                found = advantages(round_of(rewards), method, eps=0.0)
                with self.subTest(rewards=rewards, method=method):
                    self.assertTrue(found.no_signal)
                    self.assertEqual({value for value in found.by_rollout.values() if value is not None}, {0.0})
                    self.assertTrue(all(row.no_signal for row in found.rows))
        self.assertFalse(advantages(round_of([1e-12, 2e-12]), "grpo").no_signal)

    def test_a_round_without_any_number_gives_none(self) -> None:
        found = advantages(round_of([None, None]))
        self.assertEqual(list(found.by_rollout.values()), [None, None])
        self.assertEqual(found.rows, [])

    def test_who_is_out_has_no_part_whatever_its_verdict(self) -> None:
        group = round_of([1.0, 0.0, 1.0], members={2: {"out": "tainted"}})
        close(self, list(advantages(group, "mean").by_rollout.values()), [0.5, -0.5, None])

    def test_unknown_methods_and_senseless_options_are_refused(self) -> None:
        group = round_of([1.0, 0.0])
        for call in (
            lambda: advantages(group, "grpoo"),
            lambda: advantages(group, "rloo", std="sample"),
            lambda: advantages(group, std="other"),  # type: ignore[arg-type]
            lambda: advantages(group, rounds=[group]),
        ):
            with self.assertRaises(ValueError):
                call()


class Shaping(unittest.TestCase):
    def test_replaces_the_numbers_and_says_so(self) -> None:
        group = round_of([1.0, 1.0, None])
        found = advantages(group, "mean", shape=lambda group: {"r0": 1.0, "r1": 0.5})
        close(self, list(found.by_rollout.values()), [0.25, -0.25, None])
        self.assertEqual([row.reward_used for row in found.rows], [1.0, 0.5])
        self.assertEqual(group.members[1].reward, 1.0)

    def test_neither_makes_a_number_of_null_nor_forgets_one(self) -> None:
        group = round_of([1.0, 0.0, None])
        for shaped in ({"r0": 1.0, "r1": 0.0, "r2": 0.0}, {"r0": 1.0}, {"r0": 1.0, "r1": math.nan}):
            with self.subTest(shaped=shaped), self.assertRaises(ValueError):
                advantages(group, shape=lambda group, shaped=shaped: shaped)


class Rounds(unittest.TestCase):
    def test_all_rounds_count_each_rollout_once(self) -> None:
        first = round_of([1.0, 0.0])
        again = round_of([1.0, 0.0, 0.0, 0.0])
        found = advantages(again, "mean", baseline="all_rounds", rounds=[first])
        close(self, list(found.by_rollout.values()), [0.75, -0.25, -0.25, -0.25])
        header = encoder.simple([1.0, 1.0])
        for index, member in enumerate(header["members"]):
            header["rows"][index]["rollout_id"] = member["rollout_id"] = f"s{index}"
        other = decode(encoder.encode(header))
        found = advantages(first, "mean", baseline="all_rounds", rounds=[other])
        close(self, list(found.by_rollout.values()), [0.25, -0.75])

    def test_grpo_refuses_a_round_stopped_on_its_rewards_unless_told(self) -> None:
        group = round_of([1.0, 0.0], head={"outcome_stopped": True})
        with self.assertRaises(OutcomeStopped):
            advantages(group)
        self.assertFalse(advantages(group, outcome_stopped="allow").no_signal)
        self.assertFalse(advantages(group, "rloo").no_signal)


class Forks(unittest.TestCase):
    def test_a_family_counts_once_and_is_compared_at_its_fork_point(self) -> None:
        fork = {"forked_from": {"rollout_id": "r0", "call_id": "c"}}
        group = round_of([1.0, 0.0, 0.0, 0.6, 0.2], members={1: fork, 2: fork})
        found = advantages(group, "mean").by_rollout
        # At the fork point: 1, 0, 0. Of the round: the family (1/3), 0.6, 0.2.
        top = (1 / 3 + 0.6 + 0.2) / 3
        close(self, list(found.values()), [2 / 3, -1 / 3, -1 / 3, 0.6 - top, 0.2 - top])

    def test_a_fork_of_a_fork_is_compared_at_the_last_point(self) -> None:
        group = round_of(
            [1.0, 0.0, 1.0],
            members={
                1: {"forked_from": {"rollout_id": "r0", "call_id": "c"}},
                2: {"forked_from": {"rollout_id": "r1", "call_id": "d"}},
            },
        )
        # r1 and r2 at d: 0, 1. r0 at c against the mean of what came of r1: 1, 0.5.
        close(self, list(advantages(group, "mean").by_rollout.values()), [0.25, -0.5, 0.5])

    def test_a_rollout_that_others_left_twice_is_compared_where_the_last_left(self) -> None:
        # r0 called row0-call-0, then row0-call-1; r1 left it at the second, r2 at the first.
        group = round_of(
            [1.0, 0.0, 0.0],
            members={
                1: {"forked_from": {"rollout_id": "r0", "call_id": "row0-call-1"}},
                2: {"forked_from": {"rollout_id": "r0", "call_id": "row0-call-0"}},
            },
        )
        # r0 and r1 at the second: 1, 0. r2 at the first against what came of r0's way on: 0.5, 0.
        close(self, list(advantages(group, "mean").by_rollout.values()), [0.5, -0.5, -0.25])

    def test_a_fork_whose_origin_is_not_there_stands_alone(self) -> None:
        group = round_of([1.0, 0.0], members={1: {"forked_from": {"rollout_id": "elsewhere", "call_id": "c"}}})
        close(self, list(advantages(group, "mean").by_rollout.values()), [0.5, -0.5])


class Weights(unittest.TestCase):
    def setUp(self) -> None:
        rows = [
            encoder.row("a", "r0", 1.0, [(2, 3)], rows_of_rollout=2, is_last=False),
            encoder.row("b", "r0", 1.0, [(2, 1), (1, 4)], rows_of_rollout=2),
            encoder.row("c", "r1", 0.0, [(2, 2)]),
            encoder.row("d", "r1", 0.0, [(2, 0)], rows_of_rollout=2),
        ]
        header = encoder.round_of([encoder.member("r0", 1.0, 0), encoder.member("r1", 0.0, 1)], rows)
        self.group = decode(encoder.encode(header))

    def test_rows_share_one_advantage_and_each_says_its_part(self) -> None:
        found = advantages(self.group, "mean")
        self.assertEqual(
            [(row.row_id, row.advantage, row.weight) for row in found.rows], [("a", 0.5, 0.5), ("b", 0.5, 0.5), ("c", -0.5, 1.0)]
        )
        self.assertEqual([row.weight for row in advantages(self.group, "mean", weights="token").rows], [1.0, 1.0, 1.0])

    def test_scales_make_each_mean(self) -> None:
        dice = random.Random(1)
        rows = self.group.rows
        losses = [[dice.random() for bit in row.loss_mask if bit] for row in rows]
        flat = statistics.fmean(loss for row in losses for loss in row)
        means = [statistics.fmean(row) if row else 0.0 for row in losses]
        wanted = {
            "token": flat,
            "row": ((means[0] + means[1]) / 2 + means[2]) / 2,
            "rollout": (statistics.fmean(losses[0] + losses[1]) + means[2]) / 2,
        }
        for mean, value in wanted.items():
            found = sum(scale * sum(row) for scale, row in zip(row_scales(rows, mean), losses, strict=True))  # type: ignore[arg-type]
            self.assertAlmostEqual(found, value, places=12, msg=mean)
