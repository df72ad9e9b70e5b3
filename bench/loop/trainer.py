"""The trainer of bench/loop.ts: has groups of long rollouts done, then times how long their rows take into numpy's arrays, and prints that as JSON.

Beside it the bytes that Paddock sent are fetched from a plain server and decoded in the same way.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients/python/src"))

from paddock_rl import Paddock, decode  # noqa: E402
from paddock_rl.client import Run  # noqa: E402
from paddock_rl.http import Request  # noqa: E402
from paddock_rl.rows import MEDIA_TYPE, Group  # noqa: E402

try:
    from numpy import asarray
except ModuleNotFoundError:
    asarray = memoryview

TURNS = 2


def rollout(run: Run, group: str, words: str, index: int) -> dict[str, Any]:
    """One rollout of two long turns; answers what ending it said."""
    opened = run.paddock.open_rollout(group)
    messages: list[dict[str, str]] = []
    for turn in range(TURNS):
        messages.append({"role": "user", "content": f"{index} {turn} {words}"})
        body = json.dumps({"model": "x", "messages": messages}).encode()
        headers = {"authorization": f"Bearer {opened['key']}", "content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{opened['base_url']}/chat/completions", body, headers)) as answer:
            messages.append(json.load(answer)["choices"][0]["message"])
    verdict = {"source": "bench", "reward": float(index % 2)}
    return run.paddock.end_rollout(str(opened["rollout_id"]), verdict=verdict)


def settle(run: Run, names: list[str], n: int, words: str) -> None:
    """Groups whose members have all ended."""
    run.submit([{"group_id": name, "task": {"name": "bench", "instruction": name}, "n": n} for name in names])
    with ThreadPoolExecutor(4) as pool:
        for name in names:
            list(pool.map(lambda index, name=name: rollout(run, name, words, index), range(n)))


def arrays(group: Group) -> int:
    """All of a group as arrays; answers how many tokens those hold."""
    made = [asarray(column) for row in group.rows for column in (row.token_ids, row.loss_mask, row.logprobs)]
    return sum(len(one) for one in made) // 3


def cpu_ms(pid: str) -> float:
    """CPU time of all threads of the server and of this process so far."""
    threads = Path("/proc", pid, "task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e6 + time.process_time() * 1000


def timed(call: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return (time.perf_counter() - began) * 1000, found


def main() -> None:
    control, pid, plain, folder, groups, n, length = sys.argv[1:]
    count, size = int(groups), int(n)
    run = Paddock(control).run(purpose="train")
    run.attach()
    # What a word comes to in tokens is the engine's: two short rollouts tell.
    settle(run, ["length"], 2, " ".join(f"w{index % 97}" for index in range(200)))
    (short,) = run.claim(1)
    per_word = short.rows[0].n_tokens / (TURNS * 200)
    run.dispose_group(short, 0, "skipped", reason="bench")
    words = " ".join(f"w{index % 97}" for index in range(int(int(length) / TURNS / per_word)))
    waits, cpus, tokens = [], [], 0
    for index in range(count):
        settle(run, [f"wait-{index}"], size, words)
        before = cpu_ms(pid)
        took, found = timed(lambda: [(group, arrays(group)) for group in run.claim(1)])
        cpus.append(cpu_ms(pid) - before)
        ((group, tokens),) = found
        waits.append(took)
        run.dispose_group(group, index, "used")
    settle(run, [f"many-{index}" for index in range(count)], size, words)
    took, many = timed(lambda: [(group, arrays(group)) for group in run.claim(count)])
    rows = sum(len(group.rows) for group, _ in many)
    # The same bytes from a server that only has them.
    paths = []
    for group, _ in many:
        path = f"/rl/v1/groups/{group.group_id}/rounds/0/rows?claim_id={group.claim_id}"
        answer = run.paddock._transport.send(Request("GET", path, repeatable=True, accept=MEDIA_TYPE))
        Path(folder, group.group_id).write_bytes(answer.body)
        paths.append(f"{plain}/{group.group_id}")

    def fetch(path: str) -> int:
        with urllib.request.urlopen(path) as answer:
            return arrays(decode(answer.read()))

    for path in paths:
        fetch(path)
    bare = [timed(lambda path=path: fetch(path))[0] for path in paths for _ in range(3)]
    whole, _ = timed(lambda: [fetch(path) for path in paths])
    size_bytes = Path(folder, many[0][0].group_id).stat().st_size
    for group, _ in many:
        run.dispose_group(group, count, "used")
    told = {
        "numpy": asarray is not memoryview,
        "rollouts": size,
        "rows": rows,
        "tokens_of_row": tokens / size,
        "bytes_of_group": size_bytes,
        "wait_ms": statistics.median(waits),
        "cpu_ms": statistics.median(cpus),
        "bare_wait_ms": statistics.median(bare),
        "rows_per_s": rows / (took / 1000),
        "bare_rows_per_s": rows / (whole / 1000),
    }
    run.finish()
    run.close()
    print(json.dumps(told))


main()
