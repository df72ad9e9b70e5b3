import unittest

from ledger import format_amount, parse_amount, split_evenly


class Amounts(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(parse_amount("12"), 1200)
        self.assertEqual(parse_amount("12.5"), 1250)
        self.assertEqual(parse_amount("1,234.56"), 123456)
        self.assertEqual(parse_amount("-0.07"), -7)

    def test_parse_refuses(self):
        for text in ("", "1.234", "abc", "1.2.3"):
            with self.assertRaises(ValueError):
                parse_amount(text)

    def test_format(self):
        self.assertEqual(format_amount(123456), "1,234.56")
        self.assertEqual(format_amount(-7), "-0.07")

    def test_split(self):
        self.assertEqual(split_evenly(100, 3), [34, 33, 33])
        self.assertEqual(sum(split_evenly(999, 7)), 999)
        with self.assertRaises(ValueError):
            split_evenly(100, 0)
