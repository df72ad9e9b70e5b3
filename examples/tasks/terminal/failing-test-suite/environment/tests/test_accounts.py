import unittest

from ledger import Ledger


class Accounts(unittest.TestCase):
    def test_ledgers_are_independent(self):
        first, second = Ledger(), Ledger()
        first.open("cash", 100)
        second.open("bank", 1)
        self.assertEqual(first.balances, {"cash": 100})

    def test_open_twice(self):
        ledger = Ledger({"cash": 5})
        with self.assertRaises(ValueError):
            ledger.open("cash")
        self.assertEqual(ledger.balances["cash"], 5)

    def test_failed_transfer_changes_nothing(self):
        ledger = Ledger({"cash": 100})
        with self.assertRaises(KeyError):
            ledger.transfer("cash", "nowhere", 10)
        with self.assertRaises(ValueError):
            ledger.transfer("cash", "cash", -5)
        self.assertEqual(ledger.balances, {"cash": 100})
        self.assertEqual(ledger.history, [])

    def test_statement_is_in_order(self):
        ledger = Ledger({"a": 10, "b": 10, "c": 10})
        ledger.transfer("a", "c", 3)
        ledger.transfer("b", "a", 2)
        self.assertEqual(ledger.statement("a"), [("c", -3), ("b", 2)])

    def test_top(self):
        self.assertEqual(Ledger({"b": 5, "a": 5, "c": 9}).top(2), ["c", "a"])
