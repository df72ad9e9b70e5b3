"""Lets crowds loose on the agent's script, as another user, with a card terminal that keeps count."""

import json
import os
import random
import signal
import subprocess
import time

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124


class Late(BaseException):
    pass


PROGRAM = "/workspace/till/sell.sh"
CARD = "/workspace/till/card.sh"
checks = {}
number = 0


def card(text):
    """The card terminal is the tests' own: it stands beside the script, and nobody but root can change it."""
    if os.path.lexists(CARD):
        os.remove(CARD)
    with open(CARD, "w") as file:
        file.write(f"#!/bin/bash\n{text}\n")
    os.chmod(CARD, 0o755)


def till(**stock):
    global number
    number += 1
    folder = f"/tmp/till{number}"
    os.makedirs(f"{folder}/stock")
    for item, count in stock.items():
        with open(f"{folder}/stock/{item}", "w") as file:
            file.write(f"{count}\n")
    open(f"{folder}/journal", "w").close()
    open(f"{folder}/cards", "w").close()
    for path in (folder, f"{folder}/stock", f"{folder}/journal", f"{folder}/cards", *(f"{folder}/stock/{i}" for i in stock)):
        os.chown(path, 1000, 1000)
    return folder


def sell(folder, item, count):
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/tmp", "TILL_DIR": folder}
    return subprocess.Popen(
        [PROGRAM, item, str(count)], cwd="/tmp", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, user=1000, group=1000, extra_groups=[], start_new_session=True,
    )


def end(process, usual=None):
    """Exit code and output. With `usual`, seconds that the like just took here, one that takes 20 times as long is (None, "")."""
    try:
        out = process.communicate(timeout=20 if usual is None else max(5, 20 * usual))[0]
        return process.returncode, out.decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        print("did not end:", process.args)
        if usual is not None:
            return None, ""
        raise Late() from None


def everyone(processes, usual=None):
    return [end(process, usual) for process in processes]


def await_card(folder, calls):
    """Until one of the calls stands at the card terminal; False when they ended without."""
    last = time.monotonic() + 10
    while not os.path.exists(f"{folder}/asked"):
        if all(call.poll() is not None for call in calls):
            return False
        if time.monotonic() > last:
            raise Late()
        time.sleep(0.01)
    return True


def stock(folder, item):
    with open(f"{folder}/stock/{item}") as file:
        return int(file.read())


def lines(folder, name):
    with open(f"{folder}/{name}") as file:
        return [line.split() for line in file.read().splitlines()]


COUNTING = 'sleep 0.02; echo "$1 $2" >> "$TILL_DIR/cards"'


def alone():
    card(COUNTING)
    folder = till(tea=5)
    wanted = [("tea", 2, 0, "sold"), ("tea", 4, 3, "sold out"), ("cup", 1, 3, "sold out"), ("tea", "0", 2, None), ("tea", "-1", 2, None), ("tea", "1x", 2, None), ("tea", 3, 0, "sold"), ("tea", 1, 3, "sold out")]
    for item, count, code, said in wanted:
        given = end(sell(folder, item, count))
        if given[0] != code or (said is not None and given[1] != said):
            print("alone", item, count, given)
            return False
    return stock(folder, "tea") == 0 and lines(folder, "journal") == [["tea", "2", "3"], ["tea", "3", "0"]] and len(lines(folder, "cards")) == 2


def consistent(folder, start, results, asked):
    """As if one after the other: each LEFT follows from the one before, cards and answers agree with the journal."""
    for item, count in start.items():
        for line in lines(folder, "journal"):
            if line[0] == item:
                count -= int(line[1])
                if count < 0 or int(line[2]) != count:
                    return False
        if stock(folder, item) != count:
            return False
    sold = sorted((item, str(count)) for (item, count), (code, _) in zip(asked, results) if code == 0)
    journal = sorted((line[0], line[1]) for line in lines(folder, "journal"))
    cards = sorted(tuple(line) for line in lines(folder, "cards"))
    answers = all((code, said) in ((0, "sold"), (3, "sold out")) for code, said in results)
    return answers and sold == journal == cards


def crowd():
    card(COUNTING)
    rng = random.Random(3)
    start = {"mug": 23, "pot": 40}
    asked = [("mug", 1) for _ in range(30)] + [("pot", rng.randrange(1, 6)) for _ in range(20)]
    rng.shuffle(asked)
    folder = till(**start)
    results = everyone([sell(folder, *request) for request in asked])
    return consistent(folder, start, results, asked) and stock(folder, "mug") == 0


def card_fails():
    card('[ "$1" = bad ] && exit 1; ' + COUNTING)
    folder = till(bad=3, good=3)
    results = everyone([sell(folder, item, 1) for item in ("bad", "good", "bad", "good")])
    return [code for code, _ in results] == [4, 0, 4, 0] and stock(folder, "bad") == 3 and stock(folder, "good") == 1 and len(lines(folder, "journal")) == 2


HANGING = 'if [ "$1" = slow ]; then touch "$TILL_DIR/asked"; sleep 50; fi; echo "$1 $2" >> "$TILL_DIR/cards"'


def others_do_not_wait():
    card(HANGING)
    folder = till(slow=5, quick=6)
    began = time.monotonic()
    end(sell(folder, "quick", 1))
    usual = time.monotonic() - began
    slow = sell(folder, "slow", 1)
    if not await_card(folder, [slow]):
        return False
    quick = end(sell(folder, "quick", 1), usual)
    os.killpg(slow.pid, signal.SIGKILL)
    slow.communicate()
    return quick == (0, "sold")


def timed_sales(folder, usual=None):
    began = time.monotonic()
    results = everyone([sell(folder, "tea", 2) for _ in range(5)], usual)
    return results, time.monotonic() - began


def killed():
    card(COUNTING)
    _, usual = timed_sales(till(tea=50))
    card('if [ -e "$TILL_DIR/hang" ]; then touch "$TILL_DIR/asked"; sleep 50; fi; echo "$1 $2" >> "$TILL_DIR/cards"')
    folder = till(tea=50)
    open(f"{folder}/hang", "w").close()
    stuck = [sell(folder, "tea", 1) for _ in range(4)]
    if not await_card(folder, stuck):
        return False
    for process in stuck:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    os.remove(f"{folder}/hang")
    if stock(folder, "tea") != 50 or lines(folder, "journal"):
        return False
    results, took = timed_sales(folder, usual)
    print(f"five sales took {usual:.2f} s, and {took:.2f} s after others were killed")
    return took < max(2.5, 5 * usual) and consistent(folder, {"tea": 50}, results, [("tea", 2)] * 5) and stock(folder, "tea") == 40


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False
    except Late:
        # After one that failed it makes no difference.
        if all(checks.values()):
            raise SystemExit(LATE) from None
        checks[name] = False


os.chown("/workspace/till", 0, 0)
os.chmod("/workspace/till", 0o755)
check("one_at_a_time", alone)
check("card_fails", card_fails)
check("others_do_not_wait", others_do_not_wait)
check("killed_calls", killed)
check("crowd", crowd)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
