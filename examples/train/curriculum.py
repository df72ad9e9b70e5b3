"""A curriculum of the trainer's own, beside `./paddock serve`: each step trains the task whose pass rate, drawn from its Beta posterior
over the last two weights, is nearest to one half. PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where Paddock is.

The calls, the groups and what is remembered of them are real. The learner is not: it gets better by one where a group has both passes
and failures, and a harder task needs more. Put your harness, your checker and your optimiser in its place.
"""

import os
import random

from quickstart_harness import solve
from paddock_rl import Paddock, advantages

NEEDS = {"easy": 0, "middle": 3, "hard": 6}
N = 4
STEPS = int(os.environ.get("STEPS", "40"))
chance = random.Random(0)
level = 1


class Opened:
    def __init__(self, opened, prompt):
        self.base_url, self.key, self.prompt = opened["base_url"], opened["key"], prompt


def nearest_to_half(known):
    def distance(name):
        line = known.get(name, {"passed": 0, "numbers": 0})
        return abs(chance.betavariate(1 + line["passed"], 1 + line["numbers"] - line["passed"]) - 0.5)

    return min(NEEDS, key=distance)


paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
with paddock.run("curriculum", purpose="train") as run:
    run.attach()
    for step in range(STEPS):
        known = {line["name"]: line for line in paddock.tasks(run=run.run_id, versions=(step - 1, None))}
        name = nearest_to_half(known)
        task = {"name": name, "instruction": f"Do what is {name}."}
        run.submit({"group_id": f"step-{step}", "task": task, "n": N})
        passes = max(0, min(N, level - NEEDS[name]))
        for slot in range(N):
            opened = paddock.open_rollout(f"step-{step}", idempotency_key=f"{step}-{slot}")
            solve(Opened(opened, task["instruction"]))
            paddock.end_rollout(opened["rollout_id"], verdict={"source": "checker", "reward": float(slot < passes)})
        for group in run.groups(limit=1):
            found = advantages(group, "grpo")
            run.dispose_group(group, step=step, computed=found)
            level += not found.no_signal
        print(f"step {step}: {name}, {passes} of {N} passed, level {level}", flush=True)
        run.policy(step + 1, "pausing")
        run.policy(step + 1, "live", step=step)
    run.finish()
