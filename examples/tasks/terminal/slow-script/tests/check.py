"""Runs the agent's script, as another user, on hidden inputs: small odd ones and large ones with a time limit."""

import json
import math
import os
import random
import resource
import signal
import subprocess
import time
from bisect import bisect_right

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124
checks = {}
# Processor time that the answers themselves took at most, in seconds.
longest = 0


def expected(visits):
    starts, ends = sorted(v[1] for v in visits), sorted(v[2] for v in visits)
    best, when = 0, None
    for second in sorted(set(starts)):
        inside = bisect_right(starts, second) - bisect_right(ends, second)
        if inside > best:
            best, when = inside, second
    out = [f"largest crowd {best} at {when}"]
    stays = {}
    for name, start, end in visits:
        stays.setdefault(name, []).append((start, end))
    for name in sorted(stays):
        total, reach = 0, None
        for start, end in sorted(stays[name]):
            if reach is None or start > reach:
                total, reach = total + end - start, end
            elif end > reach:
                total, reach = total + end - reach, end
        out.append(f"{name} {total}")
    n = len(visits)
    apart = sum(bisect_right(ends, start) for start in starts)
    out.append(f"pairs that met {n * (n - 1) // 2 - apart}")
    return "".join(line + "\n" for line in out).encode()


def limits():
    # Processor time, not the clock: a busy machine must not fail a fast script. This one is surely fast, and
    # a slow machine, or one whose caches others fill, gives a script so much more.
    seconds = max(4, math.ceil(8 * longest))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


def run(visits):
    text = "".join(f"{name} {start} {end}\n" for name, start, end in visits).encode()
    process = subprocess.Popen(
        ["python3", "/workspace/visits.py"], cwd="/tmp", env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        user=1000, group=1000, extra_groups=[], start_new_session=True, preexec_fn=limits,
    )
    try:
        return process.communicate(text, 50)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise SystemExit(LATE)


def some(seed, count, names, length, day=86400):
    rng = random.Random(seed)
    visits = []
    for _ in range(count):
        start = rng.randrange(day)
        visits.append((f"{rng.choice(['v', 'V', 'é', 'w'])}{rng.randrange(names)}", start, start + rng.randrange(1, length)))
    return visits


def check(name, cases):
    global longest
    # What failed in small will not be right in large, and would only take its time.
    checks[name] = all(checks.values())
    if not checks[name]:
        return
    for visits in cases:
        began = time.process_time()
        wanted = expected(visits)
        longest = max(longest, time.process_time() - began)
        given = run(visits)
        if given != wanted:
            checks[name] = False
            print(name, len(visits), f"differs: {given[:120]}")
            return


check("odd_inputs", [[], [("a", 0, 1)], [("b", 5, 9), ("b", 5, 9), ("a", 9, 12), ("c", 0, 5)], [("x", 3, 4)] * 5, [("a", -5, 2), ("a", 1, 3)]])
check("small_inputs", [some(seed, 60, 9, 30, 200) for seed in (1, 2, 3)])
check("long_stays", [some(7, 3000, 40, 80000)])
check("many_visits", [some(8, 200000, 5000, 7000)])
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
