"""Finds the answers in the image's own repository: only the two files came from the agent."""

import json
import subprocess


def git(*args):
    command = ["git", "-c", "safe.directory=*", "-C", "/workspace/shop", *args]
    return subprocess.run(command, check=True, capture_output=True).stdout


def works(commit):
    scope = {}
    try:
        exec(git("show", f"{commit}:src/price.py"), scope)
    except SyntaxError:
        return None
    total = scope["total"]
    return total([(1, 50)]) == 60 and total([(3, 1250)], 10) == 4125 and total([(1, 5)], 10) == 6


main = git("rev-list", "--reverse", "main").decode().split()
deleted = git("rev-list", "-1", "main", "--", "docs/RUNBOOK.md").decode().strip()
unreachable = [line.split()[-1] for line in git("fsck", "--unreachable", "--no-reflogs").decode().splitlines() if " commit " in line]
truth = {
    "culprit": next(commit for commit in main if works(commit) is False),
    "leaked_key": "pk_live_9f3c71e06ab84d25",
    "lost_commit": next(c for c in unreachable if "src/cache.py" in git("show", "--name-only", "--format=", c).decode()),
}
assert truth["leaked_key"].encode() in git("log", "-p", "main")
runbook = git("show", f"{deleted}~1:docs/RUNBOOK.md")

try:
    with open("/workspace/answer.json") as file:
        answer = json.load(file)
except Exception as error:
    print(f"answer.json: {error!r}")
    answer = None
try:
    with open("/workspace/RUNBOOK.md", "rb") as file:
        recovered = file.read()
except OSError as error:
    print(f"RUNBOOK.md: {error!r}")
    recovered = None

checks = {"is_object_with_exact_keys": isinstance(answer, dict) and set(answer) == set(truth)}
for key, value in truth.items():
    checks[key] = isinstance(answer, dict) and answer.get(key) == value
checks["runbook"] = recovered == runbook
reward = {"reward": int(all(checks.values()))} | {name: int(ok) for name, ok in checks.items()}
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(reward, file)
