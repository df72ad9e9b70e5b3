"""Accounts and transfers between them."""


class Ledger:
    """Holds balances. Every transfer keeps the sum of all balances."""

    def __init__(self, opening={}):
        self.balances = opening
        self.history = []

    def transfer(self, source, target, cents):
        """Moves cents from source to target.

        Raises ValueError for an amount that is not positive and KeyError for an account that does not exist; then
        nothing has changed. Accounts may be overdrawn.
        """
        self.balances[source] -= cents
        self.balances[target] += cents
        self.history.append((source, target, cents))

    def open(self, name, cents=0):
        """Opens an account. Raises ValueError when it exists already."""
        self.balances[name] = cents

    def statement(self, name):
        """The transfers of one account, oldest first, as (other account, signed cents)."""
        lines = []
        for source, target, cents in self.history:
            if source == name:
                lines.append((target, -cents))
            elif target == name:
                lines.append((source, cents))
        return sorted(lines)

    def top(self, count):
        """The names of the `count` largest balances, largest first; equal balances by name."""
        return sorted(self.balances, key=lambda name: self.balances[name], reverse=True)[:count]
