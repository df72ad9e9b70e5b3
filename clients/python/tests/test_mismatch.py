import math
import unittest

from paddock_rl import Bound, MismatchTooLarge, check_mismatch, decode

from . import encoder


class Comparing(unittest.TestCase):
    def setUp(self) -> None:
        header = encoder.simple([1.0, 0.0])
        for row in header["rows"]:
            row["arrays"]["logprobs"] = [0.0, 0.0, 0.0, -0.5, -1.5, 0.0, 0.0, -2.5]
        self.header = header
        self.rows = decode(encoder.encode(header)).rows

    def test_takes_whole_rows_and_trained_tokens_alike(self) -> None:
        trained = [-0.5, -1.5, -2.4]
        whole = [9.0, 9.0, 9.0, -0.5, -1.5, 9.0, 9.0, -2.4]
        found = check_mismatch(self.rows, [trained, whole])
        self.assertEqual(found.tokens, 6)
        self.assertAlmostEqual(found.max, 0.1)
        self.assertAlmostEqual(found.p99, 0.1)
        self.assertAlmostEqual(found.kl, 2 * (math.exp(0.1) - 1 - 0.1) / 6)
        self.assertEqual(found.report(), {"kl": found.kl, "max": found.max, "p99": found.p99})

    def test_over_the_bound_it_names_the_rollouts_the_worst_first(self) -> None:
        with self.assertRaises(MismatchTooLarge) as raised:
            check_mismatch(self.rows, [[-0.5, -1.5, -2.5], [-3.0, -1.5, -2.5]])
        self.assertEqual(raised.exception.rollouts[0], "r1")
        self.assertIn("r1", str(raised.exception))
        self.assertGreater(raised.exception.mismatch.max, 2)

    def test_logprobs_shifted_by_one_are_caught(self) -> None:
        shifted = [[0.0, *list(row.logprobs)[:-1]] for row in self.rows]
        with self.assertRaises(MismatchTooLarge):
            check_mismatch(self.rows, shifted)

    def test_the_bound_is_the_callers(self) -> None:
        far = [[-0.5, -1.5, -2.5], [-3.0, -1.5, -2.5]]
        check_mismatch(self.rows, far, Bound(kl=10, p99=10))
        with self.assertRaises(MismatchTooLarge):
            check_mismatch(self.rows, [[-0.5, -1.5, -2.5], [-0.51, -1.5, -2.5]], Bound(p99=1e-3))
        with self.assertRaises(MismatchTooLarge):
            check_mismatch(self.rows, [[1e300] * 3, [0.0] * 3])

    def test_what_is_not_known_cannot_be_compared(self) -> None:
        self.header["rows"][0]["arrays"]["logprobs"][3] = None
        rows = decode(encoder.encode(self.header)).rows
        for given in ([[-0.5, -1.5, -2.5]] * 2, [[0.0] * 4] * 2, [[0.0] * 3]):
            with self.subTest(given=given), self.assertRaises(ValueError):
                check_mismatch(rows, given)

    def test_nothing_trained_is_nothing_compared(self) -> None:
        self.assertEqual(check_mismatch([], []).tokens, 0)
