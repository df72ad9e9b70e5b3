"""Builds the repository: fixed names, dates and contents, so that every hash is the same on every run."""

import os
import subprocess
import sys

root = sys.argv[1]
os.makedirs(root)
clock = [1700000000]


def git(*args):
    date = f"{clock[0]} +0000"
    who = {"GIT_AUTHOR_NAME": "Robin", "GIT_AUTHOR_EMAIL": "robin@shop.example", "GIT_COMMITTER_NAME": "Robin", "GIT_COMMITTER_EMAIL": "robin@shop.example"}
    env = os.environ | who | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "HOME": "/nonexistent"}
    subprocess.run(["git", "-C", root, *args], check=True, env=env, stdout=subprocess.DEVNULL)


def write(path, text, mode=0o644):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    os.chmod(full, mode)


def commit(message):
    clock[0] += 5400
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)


def notes(count, topic):
    for i in range(count):
        write("docs/CHANGES.md", f"# Changes\n\nNote {i + 1} on {topic}.\n")
        commit(f"docs: note {i + 1} on {topic}")


good = '''"""Prices in cents."""


def with_tax(cents, percent):
    """Adds tax, rounding half a cent up."""
    return cents + (cents * percent + 50) // 100


def total(items, percent=19):
    return with_tax(sum(count * cents for count, cents in items), percent)
'''
refactored = good.replace("sum(count * cents for count, cents in items)", "subtotal(items)") + '''

def subtotal(items):
    return sum(count * cents for count, cents in items)
'''
culprit = refactored.replace("(cents * percent + 50) // 100", "round(cents * percent / 100)")
later = culprit.replace('"""Prices in cents."""', '"""Prices, in cents."""').replace("percent=19", "percent=20 - 1")
runbook = "# Runbook\n\n1. Stop the shop.\n2. Drain the queue: `bin/drain --all`.\n3. Restore from tape {}.\n\nÄsk Robin when in doubt.\n"

git("init", "-q", "-b", "main")
write("src/price.py", good)
write("src/__init__.py", "")
write("selftest.sh", '#!/bin/sh\n# Half a cent is rounded up.\ncd "$(dirname "$0")" && exec python3 -B -c "\nfrom src.price import total\nassert total([(1, 50)]) == 60\nassert total([(3, 1250)], 10) == 4125\nassert total([(1, 5)], 10) == 6\n"\n', 0o755)
commit("shop: prices with tax")
notes(4, "opening hours")
write("docs/RUNBOOK.md", runbook.format(4))
commit("docs: a runbook")
notes(3, "suppliers")
write("deploy/settings.env", "REGION=north\nAPI_KEY=pk_example_0000000000000000\n")
commit("deploy: settings with a placeholder")
write("deploy/settings.env", "REGION=north\nAPI_KEY=pk_live_9f3c71e06ab84d25\n")
commit("deploy: make the staging run work")
os.remove(os.path.join(root, "deploy/settings.env"))
write("deploy/README.md", "Settings come from the environment, for instance API_KEY=pk_test_1111111111111111.\n")
commit("deploy: settings come from the environment")
notes(3, "returns")
write("docs/RUNBOOK.md", runbook.format(7))
commit("docs: the new tape")
write("src/price.py", refactored)
commit("price: refactor the whole pricing, rounding included")
notes(2, "winter")
write("src/price.py", refactored.replace("def total(", "def total("[:-1] + " ["))
commit("price: try a shorter signature")
write("src/price.py", refactored)
commit("price: the shorter signature was no good")
git("checkout", "-q", "-b", "experiment")
write("src/cache.py", "prices = {}\n")
commit("cache: keep prices per customer")
git("checkout", "-q", "main")
git("branch", "-q", "-D", "experiment")
notes(3, "spring")
write("src/price.py", culprit)
write("src/order.py", '"""Orders."""\n\n\ndef lines(order):\n    return [(line["count"], line["cents"]) for line in order]\n')
commit("order: lines of an order")
notes(4, "summer")
os.remove(os.path.join(root, "docs/RUNBOOK.md"))
commit("docs: clean up")
write("src/price.py", later)
commit("price: fix rounding comment")
notes(3, "autumn")
