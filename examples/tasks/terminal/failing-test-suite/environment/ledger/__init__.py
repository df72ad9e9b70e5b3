"""A small ledger: amounts in cents, accounts, statements."""

from ledger.accounts import Ledger
from ledger.amounts import format_amount, parse_amount, split_evenly

__all__ = ["Ledger", "format_amount", "parse_amount", "split_evenly"]
