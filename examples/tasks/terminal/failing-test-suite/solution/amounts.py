"""Amounts are integers: cents."""

import re


def parse_amount(text):
    """Reads "12", "12.5", "1,234.56" or "-0.07" as cents.

    A comma groups thousands and is ignored. Raises ValueError for anything that is no amount, also for more than two
    digits after the point.
    """
    found = re.fullmatch(r"(-?)(\d+)(?:\.(\d{1,2}))?", text.strip().replace(",", ""), re.ASCII)
    if found is None:
        raise ValueError(f"no amount: {text!r}")
    sign, whole, cents = found.groups()
    value = int(whole) * 100 + int((cents or "").ljust(2, "0"))
    return -value if sign else value


def format_amount(cents):
    """The inverse: 123456 -> "1,234.56", -7 -> "-0.07"."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02d}"


def split_evenly(cents, parts):
    """Splits an amount into `parts` amounts that differ by at most one cent and sum to it, larger ones first.

    Raises ValueError when parts is less than 1.
    """
    if parts < 1:
        raise ValueError("parts must be at least 1")
    share, rest = divmod(cents, parts)
    return [share + 1] * rest + [share] * (parts - rest)
