"""A hint that fades: each task is done with and without it, and the hint gets shorter as the members that see it need it less.

Beside `./paddock serve`: PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is, PADDOCK_TASKS where the tasks are. The policy sees
the hint, its harness does not. Each pair is of one task and one version of the weights, so the gap is what the hint is worth. Only rows of
the members without one are used: what was sampled behind a hint says nothing about a prompt that has none.
"""

import json
import os

from paddock_rl import Group, Paddock

TASK = os.environ.get("PADDOCK_TASK", "log-forensics")
HINT = "Count the lines that say ERROR, each address once, and write only the number.".split()
ROUNDS, MEMBERS, ENOUGH = 3, 2, 0.5


def passed(group: Group) -> float | None:
    """The mean of the numbers; None where no member has one: nothing was learned about the hint."""
    numbers = [member.number for member in group.members if member.number is not None]
    return sum(numbers) / len(numbers) if numbers else None


paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
with paddock.run(purpose="train", tasks=os.environ["PADDOCK_TASKS"]) as run:
    run.attach()
    length, told = len(HINT), []
    for step in range(ROUNDS):
        pair = {"task": TASK, "n": MEMBERS}
        hint = {"at": "task", "text": " ".join(HINT[:length]), "label": f"hint of {length} words"}
        run.submit(
            [
                {"group_id": f"{run.run_id}-{step}-with", **pair, **({"inject": [hint]} if length else {})},
                {"group_id": f"{run.run_id}-{step}-without", **pair},
            ]
        )
        groups = {group.group_id.rsplit("-", 1)[1]: group for group in run.groups(limit=2)}
        told.append({"words": length, **{name: passed(group) for name, group in groups.items()}})
        mean = passed(groups["without"])
        said = []
        for name, group in groups.items():
            for row in group.rows:
                advantage = None if row.reward is None or mean is None else row.reward - mean
                outcome = "used" if name == "without" and row.usable and advantage is not None else "filtered"
                said.append({"row": row.row_id, "step": step, "outcome": outcome, "advantage": advantage})
        run.dispose(said)
        if (told[-1]["with"] or 0) >= ENOUGH:
            length //= 2
    run.finish()
    print(json.dumps({"run": run.run_id, "rounds": told}))
