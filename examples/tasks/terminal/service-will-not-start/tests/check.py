"""Starts the agent's service, as another user, and uses it: requests, crashes, stale process ids."""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

# As of timeout(1): no reward. On a busy machine nobody knows whose fault it is, and else the verifier finds out.
LATE = 124
HOME = "/workspace/service"
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": "/tmp"}
OLD = [{"id": 1, "text": "buy tea"}, {"id": 2, "text": "ring Åse – before six"}, {"id": 5, "text": "new lamp"}]
checks = {}


def start():
    process = subprocess.Popen(
        ["./start.sh"], cwd=HOME, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        user=1000, group=1000, extra_groups=[], start_new_session=True,
    )
    try:
        return process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise SystemExit(LATE)


def call(path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:8080{path}", data=body, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return reply.status, json.loads(reply.read(1 << 20))
    except urllib.error.HTTPError as error:
        return error.code, None
    except OSError as error:
        if isinstance(getattr(error, "reason", error), TimeoutError):
            raise SystemExit(LATE) from None
        return None, None


def pid():
    with open(f"{HOME}/run/app.pid") as file:
        return int(file.read())


def crash():
    number = pid()
    if number > 1 and os.stat(f"/proc/{number}").st_uid == 1000:
        os.kill(number, signal.SIGKILL)
    end = time.monotonic() + 20
    while call("/healthz")[0] is not None and time.monotonic() < end:
        time.sleep(0.02)


def check(name, test):
    try:
        checks[name] = bool(test())
    except Exception as error:
        print(f"{name}: {error!r}")
        checks[name] = False


os.makedirs(f"{HOME}/run", exist_ok=True)
os.chown(f"{HOME}/run", 1000, 1000)
other = subprocess.Popen(["sleep", "60"], user=1000, group=1000, extra_groups=[])


def stale(number):
    with open(f"{HOME}/run/app.pid", "w") as file:
        file.write(f"{number}\n")
    os.chown(f"{HOME}/run/app.pid", 1000, 1000)


def starts_beside_another_program():
    stale(other.pid)
    return start() == 0 and other.poll() is None and pid() != other.pid


def adds():
    first = call("/notes", json.dumps({"text": "ünï\ncode"}).encode())
    second = call("/notes", b'{"text": ""}')
    return first == (201, {"id": 6, "text": "ünï\ncode"}) and second == (201, {"id": 7, "text": ""})


def refuses():
    bodies = [b"", b"not json", b"[]", b'"text"', b"{}", b'{"text": 3}', b"null"]
    return all(call("/notes", body)[0] == 400 for body in bodies) and call("/healthz")[0] == 200


def survives_a_crash():
    crash()
    with open(f"{HOME}/data/notes.jsonl", "ab") as file:
        file.write(b'{"id": 8, "text": "half')
    stale(999999)
    if start() != 0 or call("/notes") != (200, [*OLD, {"id": 6, "text": "ünï\ncode"}, {"id": 7, "text": ""}]):
        return False
    # The next note must not be glued to the broken line.
    if call("/notes", b'{"text": "after"}') != (201, {"id": 8, "text": "after"}):
        return False
    crash()
    return start() == 0 and call("/notes")[1][-1] == {"id": 8, "text": "after"} and len(call("/notes")[1]) == 6


check("starts", starts_beside_another_program)
check("health", lambda: call("/healthz") == (200, {"status": "ok"}))
check("old_notes", lambda: call("/notes") == (200, OLD))
check("adds_notes", adds)
check("refuses_bad_bodies", refuses)
check("unknown_paths", lambda: call("/health")[0] == 404 and call("/notes/1")[0] == 404 and call("/other", b"{}")[0] == 404)
check("second_start_leaves_it_alone", lambda: (before := pid(), start(), pid() == before, call("/healthz")[0])[1:] == (1, True, 200))
check("survives_a_crash", survives_a_crash)
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
