"""A shopping cart. Amounts are in the smallest unit of its currency."""

TAX = {"EUR": 19, "CHF": 8, "JPY": 10}
DISCOUNTS = {"SPRING": 10, "STAFF": 25}


class Cart:
    def __init__(self, currency="EUR"):
        if currency not in TAX:
            raise ValueError(f"unknown currency {currency}")
        self.currency = currency
        self.lines = []
        self.code = None

    def add(self, name, cents, count=1):
        """Ten or more of a thing cost a tenth less, rounded down."""
        if count < 1 or cents < 0:
            raise ValueError("count must be positive, the price must not be negative")
        if count >= 10:
            cents = cents * 9 // 10
        self.lines.append((name, cents, count))

    def discount(self, code):
        """Takes a percentage off the whole cart; a later code replaces an earlier one."""
        if code not in DISCOUNTS:
            raise ValueError(f"unknown discount code {code}")
        self.code = code

    def total(self):
        net = sum(cents * count for _, cents, count in self.lines)
        net -= net * DISCOUNTS.get(self.code, 0) // 100
        return net + net * TAX[self.currency] // 100
