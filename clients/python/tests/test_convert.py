import statistics
import unittest

from paddock_rl import (
    MultiRow,
    NoNumber,
    advantages,
    decode,
    to_areal,
    to_nemo,
    to_openrlhf,
    to_skyrl,
    to_slime,
    to_tinker,
    to_trl,
    to_trl_async,
    to_verifiers,
    to_verl,
)

from . import encoder

# One rollout of two turns: three ids of context, two sampled, two of a tool, one sampled.
IDS = [100, 101, 102, 103, 104, 105, 106, 107]
MASK = [0, 0, 0, 1, 1, 0, 0, 1]


class Shapes(unittest.TestCase):
    """What each trainer gets of one member with the reward 1 and one with 0."""

    def setUp(self) -> None:
        self.group = decode(encoder.encode(encoder.simple([1.0, 0.0])))
        self.logprobs = list(self.group.rows[0].logprobs)

    def test_trl(self) -> None:
        found = to_trl(self.group)
        self.assertEqual(found["prompt_ids"], [IDS[:3]] * 2)
        self.assertEqual(found["completion_ids"], [IDS[3:]] * 2)
        self.assertEqual(found["env_mask"], [MASK[3:]] * 2)
        self.assertEqual(found["logprobs"][0], self.logprobs[3:])
        self.assertEqual(found["reward"], [1.0, 0.0])

    def test_trl_async(self) -> None:
        found = to_trl_async(self.group, advantages(self.group, "trl"), 7)
        self.assertEqual([sample["input_ids"] for sample in found], [IDS] * 2)
        self.assertEqual(found[0]["completion_mask"], MASK)
        self.assertEqual(found[0]["old_log_probs"], self.logprobs)
        self.assertEqual([(sample["model_version"], sample["group_id"]) for sample in found], [(3, 7)] * 2)
        self.assertAlmostEqual(found[0]["advantage"], 0.5 / (statistics.stdev([1, 0]) + 1e-4))

    def test_verl(self) -> None:
        (first,), (second,) = to_verl(self.group)
        self.assertEqual((first["prompt_ids"], first["response_ids"], first["response_mask"]), (IDS[:3], IDS[3:], MASK[3:]))
        self.assertEqual(first["response_logprobs"], self.logprobs[3:])
        self.assertEqual((first["reward_score"], second["reward_score"], first["num_turns"]), (1.0, 0.0, 2))
        extra = second["extra_fields"]
        self.assertEqual((extra["uid"], extra["session"], extra["index"], extra["min_global_steps"]), ("group", 1, 0, 3))

    def test_slime(self) -> None:
        _, (second,) = to_slime(self.group, 4, 10)
        self.assertEqual((second["tokens"], second["response_length"], second["loss_mask"]), (IDS, 5, MASK[3:]))
        self.assertEqual((second["group_index"], second["index"], second["rollout_id"]), (4, 11, 11))
        self.assertEqual((second["reward"], second["status"], second["remove_sample"]), (0.0, "completed", False))
        self.assertEqual(second["weight_versions"], ["3", "3"])

    def test_skyrl(self) -> None:
        found = to_skyrl(self.group)
        self.assertEqual((found["prompt_token_ids"][0], found["response_ids"][0]), (IDS[:3], IDS[3:]))
        self.assertEqual((found["rewards"], found["is_last_step"]), ([1.0, 0.0], [True, True]))
        self.assertEqual(found["trajectory_ids"][1], {"instance_id": "group", "repetition_id": 1})
        self.assertEqual({len(value) for value in found.values()}, {2})

    def test_a_rollout_without_a_row_is_refused_where_the_trainer_would_not_count_it(self) -> None:
        for spoil in ({"usable": False, "unusable": "stale"}, None):
            header = encoder.simple([1.0, 0.0, 0.0])
            if spoil is None:
                header["rows"] = header["rows"][:2]
            else:
                header["rows"][2].update(spoil)
            group = decode(encoder.encode(header))
            for convert in (lambda: to_skyrl(group), lambda: to_slime(group, 0), lambda: to_verl(group)):
                with self.assertRaisesRegex(NoNumber, "smaller"):
                    convert()
            self.assertIsNone(to_areal(group)[2])
            # They count it by themselves.
            self.assertEqual(len(to_verifiers(group)), 3)
            self.assertAlmostEqual(advantages(group, "tinker").rows[0].advantage or 0, 2 / 3)

    def test_areal(self) -> None:
        first = (to_areal(self.group)[0] or [])[0]
        self.assertEqual(first["input_ids"], [IDS])
        self.assertEqual(first["loss_mask"], [MASK])
        self.assertEqual(first["versions"], [[-1, -1, -1, 3, 3, -1, -1, 3]])
        self.assertEqual(first["rewards"], [1.0])

    def test_verifiers(self) -> None:
        first, second = to_verifiers(self.group)
        nodes = first["nodes"]
        self.assertEqual([node["token_ids"] for node in nodes], [IDS[:3], IDS[3:5], IDS[5:7], IDS[7:]])
        self.assertEqual([node["parent"] for node in nodes], [None, 0, 1, 2])
        self.assertEqual([bit for node in nodes for bit in node["mask"]], [bool(bit) for bit in MASK])
        self.assertEqual([value for node in nodes for value in node["logprobs"]], [value for value, bit in zip(self.logprobs, MASK, strict=True) if bit])
        self.assertEqual([(call["node"], call["usage"]) for call in first["calls"]], [
            (1, {"prompt_tokens": 3, "completion_tokens": 2}), (3, {"prompt_tokens": 7, "completion_tokens": 1}),
        ])
        self.assertEqual((second["rewards"], second["ok"], second["errors"]), ({"reward": {"score": 0.0}}, True, []))
        self.assertEqual((second["stop_condition"], second["info"]["paddock"]["rows"]), ("agent_completed", ["row1"]))

    def test_verifiers_null_is_an_error_and_no_zero(self) -> None:
        header = encoder.simple([1.0, None])
        header["members"][0]["end"] = "budget"
        first, null = to_verifiers(decode(encoder.encode(header)))
        self.assertEqual(first["stop_condition"], "max_total_tokens")
        self.assertEqual((null["ok"], null["rewards"], null["errors"][0]["type"]), (False, {"reward": None}, "NoNumber"))
        self.assertFalse(any(bit for node in null["nodes"] for bit in node["mask"]))

    def test_verifiers_refuses_tokens_that_train_outside_of_answers(self) -> None:
        header = encoder.simple([1.0, 0.0])
        header["rows"][0]["turn_spans"] = [[3, 5]]
        with self.assertRaisesRegex(ValueError, "outside"):
            to_verifiers(decode(encoder.encode(header)))

    def test_tinker(self) -> None:
        first, second = to_tinker(self.group, advantages(self.group, "tinker"))
        self.assertEqual(first["model_input"], IDS[:-1])
        inputs = first["loss_fn_inputs"]
        self.assertEqual((inputs["target_tokens"], first["mask"]), (IDS[1:], MASK[1:]))
        self.assertEqual(inputs["advantages"], [0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.5])
        self.assertEqual(inputs["logprobs"], self.logprobs[1:])
        self.assertEqual(second["loss_fn_inputs"]["advantages"][2], -0.5)

    def test_openrlhf(self) -> None:
        first, _ = to_openrlhf(self.group)
        self.assertEqual(first["observation_tokens"], IDS)
        self.assertEqual(first["action_ranges"], [(3, 5), (7, 8)])
        self.assertEqual(first["rollout_log_probs"], self.logprobs)

    def test_nemo(self) -> None:
        first, _ = to_nemo(self.group, 5)
        roles = [(message["role"], message["token_ids"]) for message in first["message_log"]]
        wanted = [("user", IDS[:3]), ("assistant", IDS[3:5]), ("environment", IDS[5:7]), ("assistant", IDS[7:])]
        self.assertEqual(roles, wanted)
        self.assertEqual([("generation_logprobs" in message) for message in first["message_log"]], [False, True, False, True])
        self.assertEqual((first["idx"], first["length"], first["reward"], first["loss_multiplier"]), (5, 8, 1.0, 1.0))


class UnevenFate(unittest.TestCase):
    """1, 0, a null verdict, one that its budget cut at 0.5, and one that its infrastructure failed before it called the model."""

    def setUp(self) -> None:
        rewards = [1.0, 0.0, None, 0.5]
        header = encoder.simple(list(rewards))
        header["members"][3]["end"] = header["rows"][3]["end"] = "budget"
        header["members"].append(encoder.member("r4", None, 4, out="infra", end="infra"))
        self.header = header
        self.group = decode(encoder.encode(header))
        self.known = [1.0, 0.0, 0.5]

    def without_r4(self) -> None:
        self.header["members"].pop()
        self.group = decode(encoder.encode(self.header))

    def test_trainers_that_group_themselves_get_numbers_of_members_only(self) -> None:
        mean = statistics.fmean(self.known)
        self.without_r4()
        for outputs in (to_verl(self.group, null="masked_mean"), to_slime(self.group, 0, null="masked_mean")):
            name = "reward_score" if "reward_score" in outputs[0][0] else "reward"
            mask = "response_mask" if "response_mask" in outputs[0][0] else "loss_mask"
            numbers = [rows[0][name] for rows in outputs]
            self.assertAlmostEqual(statistics.fmean(numbers), mean)
            self.assertEqual(set(outputs[2][0][mask]), {0})
            self.assertEqual(sum(outputs[3][0][mask]), 3)
        skyrl = to_skyrl(self.group, null="masked_mean")
        self.assertAlmostEqual(statistics.fmean(skyrl["rewards"]), mean)
        self.assertEqual(set(skyrl["loss_masks"][2]), {0})
        self.assertEqual(set(skyrl["rollout_logprobs"][2]), {0.0})
        openrlhf = to_openrlhf(self.group, null="masked_mean")
        self.assertAlmostEqual(statistics.fmean(row["reward"] for row in openrlhf), mean)
        self.assertEqual(openrlhf[2]["action_ranges"], [])
        self.assertEqual([row["truncated"] for row in openrlhf], [False, False, False, True])
        nemo = to_nemo(self.group, 0, null="masked_mean")
        self.assertAlmostEqual(statistics.fmean(row["reward"] for row in nemo), mean)
        self.assertEqual([row["loss_multiplier"] for row in nemo], [1.0, 1.0, 0.0, 1.0])
        self.assertEqual([row["truncated"] for row in nemo], [False, False, False, True])

    def test_by_default_a_null_that_cannot_be_said_is_refused(self) -> None:
        for call in (
            lambda: to_verl(self.group),
            lambda: to_slime(self.group, 0),
            lambda: to_skyrl(self.group),
            lambda: to_openrlhf(self.group),
            lambda: to_nemo(self.group, 0),
            lambda: to_trl(self.group),
        ):
            with self.assertRaises(NoNumber):
                call()

    def test_where_there_is_a_word_for_null_it_is_used(self) -> None:
        self.assertEqual([rows is None for rows in to_areal(self.group)], [False, False, True, False, True])
        computed = advantages(self.group, "tinker")
        data = to_tinker(self.group, computed)
        mean = statistics.fmean(self.known)
        self.assertEqual(len(data), 3)
        for datum, number in zip(data, self.known, strict=True):
            self.assertAlmostEqual(datum["loss_fn_inputs"]["advantages"][2], number - mean)
        self.assertEqual([sample["metrics"]["reward"] for sample in to_trl_async(self.group, computed, 0)], self.known)
        self.without_r4()
        trl = to_trl(self.group)
        self.assertEqual(trl["reward"], [1.0, 0.0, None, 0.5])
        self.assertEqual(set(trl["env_mask"][2]), {0})

    def test_a_round_without_any_number_cannot_be_filled_by_a_mean(self) -> None:
        group = decode(encoder.encode(encoder.simple([None, None])))
        with self.assertRaises(NoNumber):
            to_verl(group, null="masked_mean")


class SeveralRows(unittest.TestCase):
    def setUp(self) -> None:
        rows = [
            encoder.row("main", "r0", 1.0, [(3, 4)], rows_of_rollout=2),
            encoder.row("side", "r0", 1.0, [(2, 1)], rows_of_rollout=2, is_last=False),
            encoder.row("only", "r1", 0.0, [(3, 1)]),
        ]
        members = [encoder.member("r1", 0.0, 1), encoder.member("r0", 1.0, 0)]
        self.header = encoder.round_of(members, rows)
        self.group = decode(encoder.encode(self.header))

    def test_one_row_trainers_refuse_or_count_what_is_lost(self) -> None:
        for call in (lambda: to_trl(self.group), lambda: to_openrlhf(self.group), lambda: to_nemo(self.group, 0)):
            with self.assertRaisesRegex(MultiRow, "multi_row"):
                call()
        trl = to_trl(self.group, several="main_chain")
        self.assertEqual((trl["row_id"], trl["lost_tokens"]), (["main", "only"], [1, 0]))
        self.assertEqual(to_openrlhf(self.group, several="main_chain")[0]["extra_logs"]["lost_tokens"], 1)
        self.assertEqual(to_nemo(self.group, 0, several="main_chain")[0]["extra_env_info"]["lost_tokens"], 1)

    def test_the_others_take_all_the_last_one_last(self) -> None:
        self.assertEqual(
            [[row["extra_fields"]["row_id"] for row in rows] for rows in to_verl(self.group)], [["side", "main"], ["only"]]
        )
        skyrl = to_skyrl(self.group)
        self.assertEqual((skyrl["rewards"], skyrl["is_last_step"]), ([0.0, 1.0, 0.0], [False, True, True]))
        self.assertEqual([len(rows) for rows in to_slime(self.group, 0)], [2, 1])
        self.assertEqual([len(rows or []) for rows in to_areal(self.group)], [2, 1])
        self.assertEqual(len(to_tinker(self.group, advantages(self.group, "mean"))), 3)

    def test_rows_that_cannot_be_said_are_refused_and_not_bent(self) -> None:
        self.header["rows"][0]["arrays"]["logprobs"][4] = None
        group = decode(encoder.encode(self.header))
        with self.assertRaisesRegex(ValueError, "not known"):
            to_verl(group)
        self.header["rows"][0]["arrays"]["logprobs"][4] = -1.0
        self.header["rows"][0]["prompt_len"] = 4
        with self.assertRaisesRegex(ValueError, "prompt"):
            to_verl(decode(encoder.encode(self.header)))
