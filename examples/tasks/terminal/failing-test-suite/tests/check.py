"""Tries the agent's package with hidden inputs. It runs in a process of its own, as another user; answers stay here."""

import json
import os
import random
import signal
import subprocess

A, L = "ledger.", "l = ledger.Ledger"
rng = random.Random(7)


def fmt(cents):
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100:,}.{abs(cents) % 100:02d}"


numbers = [0, 5, 99, 100, -1, -99, -100, -12345, 10**9 + 7] + [rng.randrange(-10**8, 10**8) for _ in range(30)]
splits = [(0, 3), (1, 4), (-100, 3), (10**12 + 1, 6), (7, 7)] + [(rng.randrange(10**6), rng.randrange(1, 30)) for _ in range(20)]
bad = ["", " ", "-", "1.234", "12a", "1..2", ".", "1.-5", "0x10", "1.2.3", "--1"]
cases = {
    "parse": [([f"{A}parse_amount({fmt(n)!r})"], ["value", n]) for n in numbers]
    + [([f"{A}parse_amount(' -3.5 ')"], ["value", -350]), ([f"{A}parse_amount('-0.5')"], ["value", -50])],
    "parse_refuses": [([f"{A}parse_amount({text!r})"], ["raises", "ValueError"]) for text in bad],
    "format": [([f"{A}format_amount({n})"], ["value", fmt(n)]) for n in numbers],
    "split": [
        ([f"{A}split_evenly({n}, {k})"], ["value", [n // k + 1] * (n % k) + [n // k] * (k - n % k)]) for n, k in splits
    ]
    + [([f"{A}split_evenly(5, {k})"], ["raises", "ValueError"]) for k in (0, -2)],
    "ledgers_are_independent": [
        ([f"!a = {A}Ledger(); b = {A}Ledger(); a.open('x', 3)", "b.balances"], ["value", {}]),
        ([f"!d = dict(x=1); l = {A}Ledger(d); l.open('y', 2)", "d"], ["value", {"x": 1}]),
    ],
    "transfers": [
        ([f"!{L}(dict(a=10, b=0))", "!l.transfer('a', 'b', 25)", "[l.balances, l.history]"], ["value", [{"a": -15, "b": 25}, [["a", "b", 25]]]]),
        ([f"!{L}(dict(a=10))", "!l.transfer('a', 'z', 1)", "[l.balances, l.history, error]"], ["value", [{"a": 10}, [], "KeyError"]]),
        ([f"!{L}(dict(a=10))", "!l.transfer('z', 'a', 1)", "[l.balances, l.history, error]"], ["value", [{"a": 10}, [], "KeyError"]]),
        ([f"!{L}(dict(a=10, b=1))", "!l.transfer('a', 'b', 0)", "[l.balances, l.history, error]"], ["value", [{"a": 10, "b": 1}, [], "ValueError"]]),
        ([f"!{L}(dict(a=1))", "!l.open('a', 9)", "[l.balances, error]"], ["value", [{"a": 1}, "ValueError"]]),
    ],
    "statement": [
        ([f"!{L}(dict(a=9, b=9, z=9))", "!l.transfer('a','z',4); l.transfer('z','a',3); l.transfer('b','a',2); l.transfer('b','z',1)", "l.statement('a')"], ["value", [["z", -4], ["z", 3], ["b", 2]]]),
    ],
    "top": [([f"{A}Ledger(dict(d=1, c=1, b=1, a=0, e=7)).top(4)"], ["value", ["e", "b", "c", "d"]])],
}

flat = [case for group in cases.values() for case in group]
driver = "".join(json.dumps(steps) + "\n" for steps, _ in flat)
with open("/tests/driver.py") as file:
    program = file.read()
agent = subprocess.Popen(
    ["python3", "-I", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    cwd="/", env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, user=1000, group=1000, extra_groups=[], start_new_session=True,
)
try:
    answers = agent.communicate(driver.encode(), timeout=40)[0].decode(errors="replace").splitlines()
except subprocess.TimeoutExpired:
    os.killpg(agent.pid, signal.SIGKILL)
    # As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
    raise SystemExit(124)

checks, at = {}, 0
for name, group in cases.items():
    ok = True
    for steps, wanted in group:
        try:
            given = json.loads(answers[at])
        except Exception:
            given = None
        if given != wanted:
            ok = False
            print(f"{name}: {steps}: {str(given)[:200]}")
        at += 1
    checks[name] = ok

reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
