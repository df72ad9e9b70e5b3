"""Builds the agent's sources as another user in this fresh box and tries the program on hidden inputs."""

import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124
HOME = "/workspace/stats"
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/tmp"}


def limits():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))


def run(argv, stdin=b"", timeout=20):
    """Exit code, output and errors of a command of the agent's making."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=HOME, env=ENV,
        user=1000, group=1000, extra_groups=[], start_new_session=True, preexec_fn=limits,
    )
    try:
        out, err = process.communicate(stdin, timeout)
        return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        print("did not end:", argv)
        raise SystemExit(LATE)


checks = {}


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False


def builds():
    for folder in ("bin", "obj"):
        shutil.rmtree(f"{HOME}/{folder}", ignore_errors=True)
    code, out, err = run(["make"])
    print(out[-1500:], err[-1500:])
    compiles = [line for line in out.splitlines() if re.search(r"\bg?cc\b", line)]
    strict = all("-Wall" in line and "-Wextra" in line and "-Werror" in line for line in compiles if " -c " in line)
    with open(f"{HOME}/bin/stats", "rb") as file:
        is_program = file.read(4) == b"\x7fELF"
    return code == 0 and strict and len(compiles) >= 2 and is_program and "warning" not in err


def expected(numbers):
    if not numbers:
        return "count 0\n"
    mean = math.fsum(numbers) / len(numbers)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / len(numbers))
    return f"count {len(numbers)}\nmean {mean:.3f}\nstddev {spread:.3f}\n"


def answers():
    rng = random.Random(99)
    series = [[1.0], [2, 4, 4, 4, 5, 5, 7, 9], [-1.5, 1.5], [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]]
    series += [[round(rng.uniform(-1000, 1000), 2) for _ in range(rng.randrange(1, 400))] for _ in range(12)]
    for numbers in series:
        text = "".join(f"{x!r}{rng.choice(' ' + chr(9) + chr(10))}" for x in numbers)
        given = run(["bin/stats"], text.encode())
        if given != (0, expected(numbers), ""):
            print(text[:100], given)
            return False
    return True


def refuses():
    for text, word in [("1 2 x3 4", "x3"), ("12abc", "12abc"), ("1,5", "1,5"), ("5 1e", "1e"), ("a" * 63, "a" * 63)]:
        if run(["bin/stats"], text.encode()) != (2, "", f"error: not a number: {word}\n"):
            return False
    return True



def headers():
    code, out, _ = run(["make"])
    idle = code == 0 and not re.search(r"\bg?cc\b", out)
    before = os.stat(f"{HOME}/bin/stats").st_mtime_ns
    run(["touch", "-d", "+1 hour", "src/stats.h"])
    code, out, _ = run(["make"])
    recompiled = set(re.findall(r"src/(\w+)\.c", out))
    users = {name[:-2] for name in os.listdir(f"{HOME}/src") if name.endswith(".c") and uses_stats(name)}
    print("idle", idle, "recompiled", recompiled, "users", users)
    return idle and code == 0 and users <= recompiled and len(users) >= 2 and os.stat(f"{HOME}/bin/stats").st_mtime_ns > before


def uses_stats(name, seen=()):
    with open(f"{HOME}/src/{name}") as file:
        included = re.findall(r'^\s*#\s*include\s+"(\w+\.h)"', file.read(), re.M)
    return "stats.h" in included or any(uses_stats(h, (*seen, name)) for h in included if h not in seen)


def cleans():
    code, _, _ = run(["make", "clean"])
    return code == 0 and not os.path.exists(f"{HOME}/bin") and not os.path.exists(f"{HOME}/obj")


check("builds", builds)
check("answers", answers)
check("empty_input", lambda: run(["bin/stats"], b" \n") == (0, "count 0\n", ""))
check("refuses_words", refuses)
check("incremental", headers)
check("cleans", cleans)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
