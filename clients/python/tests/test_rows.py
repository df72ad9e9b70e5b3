import gzip
import json
import math
import random
import struct
import unittest
from unittest import mock

from paddock_rl import Malformed, decode
from paddock_rl.rows import Group

from . import encoder


def arrays_of(group: Group) -> list[tuple[list[int], list[int], list[float]]]:
    return [(list(row.token_ids), list(row.loss_mask), list(row.logprobs)) for row in group.rows]


def as_stored(value: float | None) -> float:
    return math.nan if value is None else struct.unpack("<f", struct.pack("<f", value))[0]


class Reading(unittest.TestCase):
    def test_gives_back_whatever_the_encoder_wrote(self) -> None:
        for seed in range(300):
            header = encoder.anything(random.Random(seed))
            group = decode(encoder.encode(header))
            self.assertEqual([member.raw for member in group.members], header["members"])
            for row, want in zip(group.rows, header["rows"], strict=True):
                self.assertEqual(list(row.token_ids), want["arrays"]["token_ids"])
                self.assertEqual(list(row.loss_mask), want["arrays"]["loss_mask"])
                stored = [as_stored(value) for value in want["arrays"]["logprobs"]]
                self.assertEqual(repr(list(row.logprobs)), repr(stored))
                self.assertEqual(row.trained_tokens, sum(want["arrays"]["loss_mask"]))
                self.assertEqual(row.turn_spans, [tuple(span) for span in want["turn_spans"]])

    def test_logprobs_of_other_models_are_there_null_or_not_asked_for(self) -> None:
        header = encoder.simple([1.0, 0.0])
        for row in header["rows"]:
            row["arrays"]["ref_logprobs"] = [None, *[-0.5] * (row["n_tokens"] - 1)]
            row["arrays"]["teacher_logprobs"] = None
            row["arrays"]["entropies"] = [None, *[0.25] * (row["n_tokens"] - 1)]
            row["arrays"]["observation_mask"] = [1] * row["n_tokens"]
            row["message_spans"] = [{"start": 0, "end": row["n_tokens"], "role": "tool", "part": "content"}]
        header["scores"] = {"reference": {"missing": None}, "teacher": {"missing": "ENGINE_UNREACHABLE"}}
        plain = json.dumps(header).encode()
        for group in (decode(encoder.encode(header)), decode(plain, "application/json")):
            first = group.rows[0]
            assert first.ref_logprobs is not None
            self.assertTrue(math.isnan(first.ref_logprobs[0]))
            self.assertEqual(list(first.ref_logprobs[1:]), [-0.5] * (first.n_tokens - 1))
            self.assertIsNone(first.teacher_logprobs)
            assert first.entropies is not None
            assert first.observation_mask is not None and first.message_spans is not None
            self.assertEqual([list(first.observation_mask), first.message_spans[0]["role"]], [[1] * first.n_tokens, "tool"])
            self.assertEqual(list(first.entropies[1:]), [0.25] * (first.n_tokens - 1))
            self.assertEqual(group.scores["teacher"]["missing"], "ENGINE_UNREACHABLE")
        none = decode(encoder.encode(encoder.simple([1.0])))
        self.assertEqual((none.rows[0].ref_logprobs, none.scores), (None, {}))

    def test_json_and_gzip_say_the_same(self) -> None:
        header = encoder.anything(random.Random(7))
        binary = encoder.encode(header)
        plain = decode(json.dumps(header).encode(), "application/json; charset=utf-8")
        self.assertEqual(repr(arrays_of(plain)), repr(arrays_of(decode(gzip.compress(binary)))))

    def test_a_machine_of_the_other_byte_order_swaps(self) -> None:
        # Seen from such a machine, this one's bytes are the other way round.
        header = encoder.simple([1.0])
        row = decode(encoder.encode(header)).rows[0]
        with mock.patch("sys.byteorder", "big"):
            swapped = list(row.token_ids)
        ids = header["rows"][0]["arrays"]["token_ids"]
        self.assertEqual(swapped, [int.from_bytes(value.to_bytes(4, "little"), "big") for value in ids])

    def test_null_reward_stays_null_and_nan_stays_unknown(self) -> None:
        header = encoder.simple([None, 0.0])
        header["rows"][1]["arrays"]["logprobs"][3] = None
        group = decode(encoder.encode(header))
        self.assertIsNone(group.members[0].reward)
        self.assertIsNone(group.rows[0].reward)
        self.assertEqual(group.members[1].number, 0.0)
        self.assertTrue(math.isnan(group.rows[1].logprobs[3]))
        self.assertEqual([row.row_id for row in group.trainable()], ["row1"])

    def test_age_counts_the_oldest_trainable_token(self) -> None:
        header = encoder.simple([1.0])
        header["rows"][0]["versions"] = [[0, 3, -1, -1], [3, 5, 4, 6], [7, 8, 2, 2]]
        self.assertEqual(decode(encoder.encode(header)).rows[0].oldest_version, 2)
        header["rows"][0]["arrays"]["loss_mask"][7] = 0
        self.assertEqual(decode(encoder.encode(header)).rows[0].oldest_version, 4)

    def test_every_cut_of_a_body_is_refused(self) -> None:
        body = encoder.encode(encoder.simple([1.0, 0.0]))
        for length in range(len(body)):
            with self.subTest(length=length), self.assertRaises(Malformed):
                decode(body[:length])

    def test_places_that_are_not_in_the_body_are_refused(self) -> None:
        for name, change in (
            ("offset", {"offset": 4}),
            ("offset", {"offset": -8}),
            ("offset", {"offset": 1 << 20}),
            ("length", {"length": 5}),
            ("dtype", {"dtype": "i8"}),
        ):
            header = encoder.simple([1.0])
            body = encoder.encode(header)
            (length,) = struct.unpack_from("<I", body, 8)
            told = json.loads(body[12 : 12 + length])
            told["rows"][0]["arrays"]["token_ids"].update(change)
            text = json.dumps(told).encode()
            head = b"PDKROWS1" + struct.pack("<I", len(text)) + text
            area = body[(12 + length + 7) // 8 * 8 :]
            with self.subTest(name=name, change=change), self.assertRaises(Malformed):
                decode(head + bytes(-len(head) % 8) + area)

    def test_rewards_that_are_no_numbers_are_refused(self) -> None:
        for reward in ("1", True, math.inf):
            header = encoder.simple([1.0])
            header["members"][0]["reward"] = reward
            with self.subTest(reward=reward), self.assertRaises(Malformed):
                decode(encoder.encode(header))
