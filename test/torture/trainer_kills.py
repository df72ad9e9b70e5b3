"""An asynchronous trainer that may be killed at any time: `trainer_kills.py DIRECTORY STEPS BACK`.

What a real one has in its weights, this one has in its journal: each step that it trained, token by token, written to disk before
Paddock hears of it. A checkpoint of every step is kept; Paddock is told of one only when it is three steps old, so that `BACK` (0 to
2) older ones than the newest may be resumed from. The harness of two turns runs in threads beside it.
"""

import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from paddock_rl import Paddock, PaddockError, Unanswered, advantages

DIRECTORY, STEPS, BACK = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
GROUPS, MEMBERS, LAG, SAFE_AFTER = 2, 3, 1, 3


def append(name, **entry):
    with open(DIRECTORY / name, "a") as file:
        file.write(json.dumps(entry) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(name):
    """Lines that are whole: the last one may be cut off by a kill."""
    path = DIRECTORY / name
    lines = path.read_text().split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]


def mend(name):
    """A line that a kill cut off must not run into the next one."""
    path = DIRECTORY / name
    if path.exists() and not (text := path.read_bytes()).endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])


def say(opened, messages):
    """A call of the harness, again for as long as Paddock is away."""
    body = json.dumps({"model": "policy", "messages": messages}).encode()
    headers = {"authorization": f"Bearer {opened['key']}", "content-type": "application/json"}
    while True:
        try:
            asked = urllib.request.Request(f"{opened['base_url']}/chat/completions", body, headers)
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.load(answer)["choices"][0]["message"]
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise
        except (OSError, ValueError):
            pass
        time.sleep(0.05)


def play(paddock, group, slot):
    opened = paddock.open_rollout(group, idempotency_key=f"{group}-{slot}")
    if opened.get("end") is not None:
        return
    messages = []
    for turn in range(2):
        messages.append({"role": "user", "content": f"Talk. {group} {slot} {turn}"})
        messages.append(say(opened, messages))
    paddock.end_rollout(opened["rollout_id"], verdict={"source": "test", "reward": float(slot % 2)})


class Players:
    def __init__(self, paddock):
        self.paddock, self.waiting = paddock, queue.Queue()
        for _ in range(3):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            group, slot = self.waiting.get()
            try:
                play(self.paddock, group, slot)
            except BaseException as error:  # noqa: B902
                print(f"{group} {slot}: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)

    def add(self, group):
        for slot in range(MEMBERS):
            self.waiting.put((group, slot))


def trained(group):
    """[row, call, first token, last token] of all that trains."""
    found = []
    for row in group.rows:
        assert len(row.node_ids) == len(row.turn_spans), row.raw
        for call, (start, end) in zip(row.node_ids, row.turn_spans):
            mask = list(row.loss_mask[start:end])
            if any(mask):
                assert all(mask), row.raw
                found.append([row.row_id, call, end - start])
    return found


def main():
    for name in ("trained.jsonl", "asked.jsonl", "life.jsonl"):
        mend(name)
    paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"], os.environ["PADDOCK_CONTROL_TOKEN"], patience_s=300)
    newest, safe = None, -1
    for entry in read("life.jsonl"):
        newest = entry["step"]
        safe = max(safe, entry.get("safe", -1))
    resume = None if newest is None or max(safe, newest - BACK) < 0 else max(safe, newest - BACK)
    run = paddock.run("kills", staleness={"max": LAG, "mode": "report"})
    attached = run.attach(resume)
    append("life.jsonl", attached=attached.incarnation, step=resume)
    players = Players(paddock)
    for entry in read("asked.jsonl"):
        submit(run, players, entry["group"])
    done = 0 if resume is None else resume + 1
    announce(run, done)
    number = 0
    for step in range(done, STEPS):
        counts = run.state()["counts"]
        wanted = min(LAG + 1, STEPS - step) * GROUPS
        for _ in range(wanted - counts["running"] - counts["settled_unclaimed"] - counts["claimed"]):
            name = f"g{attached.incarnation}-{number}"
            append("asked.jsonl", group=name)
            submit(run, players, name)
            number += 1
        owed = {}
        while len(owed) < GROUPS:
            try:
                # A group whose lease ran out while Paddock was away may come again, and counts once.
                owed |= {group.group_id: group for group in run.claim(GROUPS - len(owed), lease_s=20)}
            except Unanswered:
                continue
        rows = [row for group in owed.values() for row in trained(group)]
        append("trained.jsonl", incarnation=attached.incarnation, step=step, rows=rows, groups=list(owed))
        for group in owed.values():
            run.dispose_group(group, step, computed=advantages(group, "grpo"))
        run.metrics(step, {"rows": len(rows)})
        announce(run, step + 1)
        append("life.jsonl", step=step, safe=step - SAFE_AFTER)
        if step >= SAFE_AFTER:
            run.checkpoint(step - SAFE_AFTER)
        print(json.dumps({"step": step}), flush=True)
    run.finish()
    print(json.dumps({"finished": True}), flush=True)


def announce(run, version):
    run.policy(version, "pausing")
    run.policy(version, "live", step=version - 1 if version else None)


def submit(run, players, group):
    task = {"name": "talk", "instruction": "Talk."}
    found = run.submit({"group_id": group, "task": task, "n": MEMBERS}).accepted[0]
    if found["state"] == "running":
        players.add(group)


try:
    main()
except PaddockError as error:
    print(f"{error!r}", file=sys.stderr, flush=True)
    sys.exit(1)
