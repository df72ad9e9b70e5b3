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


class Policies(unittest.TestCase):
    def test_rounds_of_another_policy_say_nothing_of_this_one(self) -> None:
        group, same, other = (
            round_of([1.0, 0.0], head={"policy": {"name": name, "version": 1}}) for name in ("guide", "guide", "opener")
        )
        self.assertEqual((group.policy_name, round_of([1.0]).policy_name), ("guide", "default"))
        advantages(group, baseline="all_rounds", rounds=[same])
        with self.assertRaisesRegex(ValueError, "rounds of opener say nothing of guide"):
            advantages(group, baseline="all_rounds", rounds=[same, other])


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

    def test_a_member_of_which_no_token_trains_has_no_part_in_a_baseline(self) -> None:
        header = encoder.simple([100.0, 1.0, 0.0])
        header["rows"][0]["arrays"]["loss_mask"] = [0] * len(header["rows"][0]["arrays"]["loss_mask"])
        group = decode(encoder.encode(header))
        for method in ("mean", "rloo", "grpo"):
            others = advantages(round_of([None, 1.0, 0.0]), method).by_rollout
            self.assertEqual(advantages(group, method).by_rollout, others)
        shaped = advantages(group, "mean", shape=lambda of: {one.rollout_id: one.reward or 0.0 for one in of.members})
        close(self, list(shaped.by_rollout.values()), [None, 0.5, -0.5])
        # Left out by a rule of the run: its reward counts.
        for reason in ("filtered", "stale", "cut"):
            header["rows"][0]["unusable_reason"] = reason
            left = advantages(decode(encoder.encode(header)), "mean")
            close(self, [left.by_rollout["r1"]], [1 - 101 / 3])
        header["rows"][0]["unusable_reason"] = None
        # A group says itself that its cut members count.
        header["members"][0]["cut"] = "mask"
        masked = advantages(decode(encoder.encode(header)), "mean")
        close(self, [masked.by_rollout["r1"]], [1 - 101 / 3])

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


class Trees(unittest.TestCase):
    """Families that are grown at random, and values counted from the leaves by hand."""

    def grown(self, dice: random.Random) -> tuple[Group, dict[str, list[float | None]]]:
        """A round of several families, and for each rollout the wanted advantage of each of its turns."""
        rewards: dict[str, float | None] = {}
        ways: dict[str, list[tuple[str, ...]]] = {}
        families: list[list[str]] = []
        for number in range(dice.randrange(1, 4)):
            # A rollout is a way of answers; who goes on from it has its first answers.
            family = [f"f{number}"]
            answers: dict[str, list[str]] = {family[0]: [f"{family[0]}/{at}" for at in range(dice.randrange(1, 5))]}
            for index in range(dice.randrange(4)):
                other = dice.choice(family)
                kept = answers[other][: dice.randrange(len(answers[other]))]
                name = f"f{number}-{index}"
                answers[name] = kept + [f"{name}/{at}" for at in range(dice.randrange(1, 4))]
                family.append(name)
            for name in family:
                rewards[name] = dice.choice([None, float(dice.randrange(3)), dice.random()])
                ways[name] = [tuple(one for one in family if answer in answers[one]) for answer in answers[name]]
            families.append(family)

        def value(rollouts: tuple[str, ...] | list[str]) -> float | None:
            known = [number for number in (rewards[one] for one in rollouts) if number is not None]
            return statistics.fmean(known) if known else None

        tops = [number for number in map(value, families) if number is not None]
        top = statistics.fmean(tops) if tops else None
        nodes: list[dict[str, Any]] = []
        rows, wanted = [], {}
        for family in families:
            index_of: dict[tuple[str, ...], int] = {}
            whole = tuple(family)
            if any(ways[name][0] != whole for name in family):
                index_of[whole] = len(nodes)
                nodes.append({"parent": None, "depth": 0, "rollouts": family, "count": 0, "value": value(family)})
            for name in family:
                before = whole if whole in index_of else None
                turns: list[float | None] = []
                for depth, way in enumerate(ways[name]):
                    if way not in index_of:
                        index_of[way] = len(nodes)
                        parent = None if before is None else index_of[before]
                        nodes.append({"parent": parent, "depth": depth, "rollouts": list(way), "count": 0, "value": value(way)})
                    # What the answers before led to, or what the whole family and the others are worth.
                    larger = [one for one in [whole, *ways[name][: depth + 1]] if set(one) > set(way)]
                    base = value(min(larger, key=len)) if larger else top
                    own = value(way)
                    turns.append(None if own is None or base is None else own - base)
                    before = way
                places = [index_of[way] for way in ways[name]]
                if rewards[name] is not None:
                    wanted[name] = turns
                rows.append(encoder.row(name, name, rewards[name], [(2, 1 + at) for at in range(len(places))], turn_nodes=places))
        members = [encoder.member(name, reward, slot) for slot, (name, reward) in enumerate(rewards.items())]
        header = {**encoder.round_of(members, rows), "row_mode": "tree", "nodes": nodes}
        return decode(encoder.encode(header)), wanted

    def test_are_the_value_of_a_node_minus_that_of_the_one_before(self) -> None:
        seen = 0
        for seed in range(200):
            group, wanted = self.grown(random.Random(seed))
            found = advantages(group, "tree")
            for row in found.rows:
                self.assertIsNotNone(row.turns)
                close(self, row.turns or [], wanted[row.rollout_id])
                close(self, [found.by_rollout[row.rollout_id]], wanted[row.rollout_id][-1:])
                known = [(value, 1 + at) for at, value in enumerate(wanted[row.rollout_id]) if value is not None]
                mean = sum(value * tokens for value, tokens in known) / sum(tokens for _, tokens in known)
                close(self, [row.advantage], [mean])
                seen += 1
            self.assertTrue(all(found.by_rollout[member.rollout_id] is None for member in group.members if member.number is None))
        self.assertGreater(seen, 500)

    def test_a_family_counts_once_among_others(self) -> None:
        nodes = [
            {"parent": None, "depth": 0, "rollouts": ["r0", "r1", "r2"], "count": 3, "value": 2 / 3},
            {"parent": 0, "depth": 1, "rollouts": ["r0"], "count": 1, "value": 1.0},
            {"parent": 0, "depth": 1, "rollouts": ["r1"], "count": 1, "value": 1.0},
            {"parent": 0, "depth": 1, "rollouts": ["r2"], "count": 1, "value": 0.0},
            {"parent": None, "depth": 0, "rollouts": ["r3"], "count": 1, "value": 0.0},
        ]
        header = {**encoder.simple([1.0, 1.0, 0.0, 0.0]), "row_mode": "tree", "nodes": nodes}
        for row, places in zip(header["rows"], ([0, 1], [2, 2], [3, 3], [4, 4]), strict=True):
            row["turn_nodes"] = places
        found = advantages(decode(encoder.encode(header)), "tree")
        third = 1 / 3
        for row, turns in zip(found.rows, ([third, third], [third] * 2, [-2 / 3] * 2, [-third] * 2), strict=True):
            close(self, row.turns or [], turns)
        self.assertFalse(found.no_signal)

    def test_are_refused_where_there_are_no_nodes_or_a_number_would_mean_nothing(self) -> None:
        with self.assertRaisesRegex(ValueError, "row_mode"):
            advantages(round_of([1.0, 0.0]), "tree")
        with self.assertRaisesRegex(ValueError, "leave std"):
            advantages(round_of([1.0, 0.0]), "tree", std="sample")


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


class Extremes(unittest.TestCase):
    def of(self, rewards: Sequence[float], method: str = "grpo") -> list[float | None]:
        return list(advantages(decode(encoder.encode(encoder.simple(list(rewards)))), method).by_rollout.values())

    def test_large_tiny_and_signed_zeros_are_numbers(self) -> None:
        for rewards in ([1e140, -1e140], [1e-300, 0.0], [5e-324, 0.0], [-1e9, 1e9 + 1, 3.0]):
            for method in ("grpo", "rloo", "mean"):
                self.assertTrue(all(each is not None and math.isfinite(each) for each in self.of(rewards, method)), rewards)
        self.assertEqual(self.of([-0.0, 0.0]), [0.0, 0.0])

    def test_what_no_float_can_hold_is_refused_by_name(self) -> None:
        for rewards in ([1e308, -1e308], [1e308, 1e308], [1e200, 0.0]):
            with self.assertRaisesRegex(ValueError, "scale them"):
                self.of(rewards)
