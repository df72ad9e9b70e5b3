"""Builds the repository with its two branches: fixed names, dates and contents."""

import os
import subprocess
import sys

root = sys.argv[1]
os.makedirs(root)
clock = [1750000000]


def git(*args):
    date = f"{clock[0]} +0000"
    env = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "HOME": "/nonexistent"}
    subprocess.run(["git", "-C", root, *args], check=True, env=env, stdout=subprocess.DEVNULL)


def commit(message, **files):
    clock[0] += 3600
    for name, text in files.items():
        path = name.replace("__", ".")
        with open(os.path.join(root, path), "w") as file:
            file.write(text)
    git("add", "-A")
    git("commit", "-q", "-m", message)


base = '''"""A shopping cart. Amounts are in cents."""


class Cart:
    def __init__(self):
        self.lines = []

    def add(self, name, cents, count=1):
        self.lines.append((name, cents, count))

    def total(self):
        net = sum(cents * count for _, cents, count in self.lines)
        return net + net * 19 // 100
'''
ours = '''"""A shopping cart. Amounts are in the smallest unit of its currency."""

TAX = {"EUR": 19, "CHF": 8, "JPY": 10}


class Cart:
    def __init__(self, currency="EUR"):
        if currency not in TAX:
            raise ValueError(f"unknown currency {currency}")
        self.currency = currency
        self.lines = []

    def add(self, name, cents, count=1):
        if count < 1 or cents < 0:
            raise ValueError("count must be positive, the price must not be negative")
        self.lines.append((name, cents, count))

    def total(self):
        net = sum(cents * count for _, cents, count in self.lines)
        return net + net * TAX[self.currency] // 100
'''
theirs_first = base.replace("        self.lines = []\n", "        self.lines = []\n        self.code = None\n").replace(
    "    def total(self):\n",
    '''    def discount(self, code):
        """Takes a percentage off the whole cart; a later code replaces an earlier one."""
        self.code = code

    def total(self):
''').replace("        return net +", "        net -= net * DISCOUNTS.get(self.code, 0) // 100\n        return net +").replace(
    "\n\nclass Cart", '\n\nDISCOUNTS = {"SPRING": 10, "STAFF": 25}\n\n\nclass Cart', 1).replace('cents."""\n\n\n', 'cents."""\n\n')
theirs = theirs_first.replace("        self.lines.append((name, cents, count))", '        """Ten or more of a thing cost a tenth less, rounded down."""\n        if count >= 10:\n            cents = cents * 9 // 10\n        self.lines.append((name, cents, count))')
test = '''from cart import Cart


def test_total():
    cart = Cart()
    cart.add("tea", 450, 2)
    assert cart.total() == 1071


{more}
for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
print("all passed")
'''
test_ours = '''def test_currency():
    cart = Cart("CHF")
    cart.add("tea", 1000)
    assert cart.total() == 1080


def test_checks():
    for bad in (lambda: Cart("XXX"), lambda: Cart().add("tea", 1, 0), lambda: Cart().add("tea", -1)):
        try:
            bad()
        except ValueError:
            continue
        raise AssertionError("not refused")


'''
test_theirs = '''def test_discount():
    cart = Cart()
    cart.add("tea", 1000)
    cart.discount("SPRING")
    assert cart.total() == 1071


def test_many():
    cart = Cart()
    cart.add("tea", 105, 10)
    assert cart.total() == 1118


'''
git("init", "-q", "-b", "main")
git("config", "user.name", "Robin")
git("config", "user.email", "robin@shop.example")
commit("cart: sums with tax", cart__py=base, test_cart__py=test.format(more=""), settings__json='{\n  "max_lines": 50,\n  "timeout": 10\n}\n', README__md="# Shop\n\nA cart.\n")
git("checkout", "-q", "-b", "feature/discounts")
commit("cart: discount codes, taken off before tax", cart__py=theirs_first, test_cart__py=test.format(more=test_theirs.split("\n\n\ndef test_many")[0] + "\n\n\n"), README__md="# Shop\n\nA cart with discount codes.\n")
commit("cart: ten of a thing cost less", cart__py=theirs, test_cart__py=test.format(more=test_theirs), settings__json='{\n  "max_lines": 200,\n  "timeout": 15,\n  "codes": ["SPRING", "STAFF"]\n}\n')
git("checkout", "-q", "main")
commit("cart: currencies with their tax", cart__py=ours.replace('        if count < 1 or cents < 0:\n            raise ValueError("count must be positive, the price must not be negative")\n', ""), settings__json='{\n  "max_lines": 50,\n  "timeout": 30,\n  "currency": "EUR"\n}\n', README__md="# Shop\n\nA cart with currencies.\n")
commit("cart: refuse odd counts and prices", cart__py=ours, test_cart__py=test.format(more=test_ours), settings__json='{\n  "max_lines": 120,\n  "timeout": 30,\n  "currency": "EUR"\n}\n')
