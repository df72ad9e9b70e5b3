"""Looks at the history and tries the committed cart. Git and the cart run as another user; answers stay here."""

import json
import os
import random
import re
import signal
import subprocess

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124
REPOSITORY = "/workspace/shop"
OLD_MAIN = "2505a6a4af1f74c34bd69692657bd868d447792d"
FEATURE = "0622f08a4b376d5fc7b581f8684628fbbf85b5f4"
TAX = {"EUR": 19, "CHF": 8, "JPY": 10}
DISCOUNTS = {"SPRING": 10, "STAFF": 25}
# A repository can lie about its ancestry with replacement objects, grafts and shallow marks.
GIT = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/tmp"}
checks = {}


def run(argv, stdin=b"", cwd=REPOSITORY, timeout=20):
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, start_new_session=True,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **GIT}, user=1000, group=1000, extra_groups=[],
    )
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        print("did not end:", argv[:3])
        raise SystemExit(LATE)
    if process.returncode != 0:
        print(argv[:3], process.returncode, err[-300:].decode(errors="replace"))
    return process.returncode, out.decode(errors="replace")


def git(*args):
    code, out = run(["git", *args])
    if code != 0:
        raise RuntimeError(f"git {args[0]} failed")
    return out.strip()


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False


def history():
    if os.path.exists(f"{REPOSITORY}/.git/shallow"):
        return False
    parents = git("rev-list", "--parents", "-1", "main").split()[1:]
    return parents == [OLD_MAIN, FEATURE] and git("rev-parse", "feature/discounts") == FEATURE and git("fsck", "--connectivity-only") is not None


def export():
    os.makedirs("/tmp/tree")
    os.chown("/tmp/tree", 1000, 1000)
    return run(["sh", "-c", f"git -C {REPOSITORY} archive main | tar -x -C /tmp/tree"], cwd="/tmp")[0] == 0


DRIVER = """
import json, os, sys
out = os.fdopen(os.dup(1), 'w')
sys.stdout = sys.stderr
sys.path.insert(0, '/tmp/tree')
from cart import Cart
for line in sys.stdin:
    currency, lines, codes = json.loads(line)
    try:
        cart = Cart(currency) if currency else Cart()
        for name, cents, count in lines:
            cart.add(name, cents, count)
        for code in codes:
            cart.discount(code)
        answer = cart.total()
    except Exception as error:
        answer = type(error).__name__
    out.write(json.dumps(answer) + chr(10))
out.flush()
"""


def total(currency, lines, codes):
    if (currency or "EUR") not in TAX or any(count < 1 or cents < 0 for _, cents, count in lines) or any(c not in DISCOUNTS for c in codes):
        return "ValueError"
    net = sum((cents * 9 // 10 if count >= 10 else cents) * count for _, cents, count in lines)
    if codes:
        net -= net * DISCOUNTS[codes[-1]] // 100
    return net + net * TAX[currency or "EUR"] // 100


rng = random.Random(5)


def lines():
    return [["x", rng.randrange(0, 99999), rng.choice([1, 2, 9, 10, 11, 40])] for _ in range(rng.randrange(1, 6))]


cases = {
    "currencies": [(currency, lines(), []) for currency in ("EUR", "CHF", "JPY", None) for _ in range(4)],
    "discounts": [(None, lines(), codes) for codes in (["SPRING"], ["STAFF"], ["SPRING", "STAFF"]) for _ in range(4)],
    "together": [(currency, lines(), [code]) for currency in TAX for code in DISCOUNTS for _ in range(3)],
    "refusals": [("XXX", [], []), (None, [["x", 1, 0]], []), (None, [["x", -1, 1]], []), (None, [["x", 1, -10]], ["STAFF"]), ("CHF", [["x", 5, 1]], ["WINTER"]), ("JPY", [["x", 5, 1]], ["spring"])],
}


def behaviour(name):
    text = "".join(json.dumps(case) + "\n" for case in cases[name])
    code, out = run(["python3", "-I", "-c", DRIVER], text.encode(), "/tmp")
    given = [json.loads(line) for line in out.splitlines()]
    wanted = [total(*case) for case in cases[name]]
    if given != wanted:
        print(name, "wanted", wanted, "got", given)
    return code == 0 and given == wanted


def settings():
    with open("/tmp/tree/settings.json") as file:
        return json.load(file) == {"max_lines": 200, "timeout": 30, "currency": "EUR", "codes": ["SPRING", "STAFF"]}


def no_markers():
    for name in os.listdir("/tmp/tree"):
        with open(f"/tmp/tree/{name}") as file:
            if re.search(r"^(<{7}|={7}|>{7}|\|{7})( |$)", file.read(), re.M):
                return False
    return True


def tests():
    with open("/tmp/tree/test_cart.py") as file:
        text = file.read()
    names = ("test_total", "test_currency", "test_checks", "test_discount", "test_many")
    code, out = run(["python3", "-B", "test_cart.py"], cwd="/tmp/tree")
    return code == 0 and "all passed" in out and all(f"def {name}(" in text for name in names)


check("history", history)
check("clean", lambda: git("symbolic-ref", "HEAD") == "refs/heads/main" and git("status", "--porcelain") == "")
check("exports", export)
check("no_markers", no_markers)
for name in cases:
    check(name, lambda name=name: behaviour(name))
check("settings", settings)
check("tests_of_both", tests)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
