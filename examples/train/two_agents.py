"""Both agents of `examples/environments/vault` trained from the same rollouts, beside `./paddock serve` with its configuration:
PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is.

Rollouts, rows, advantages and adapters are real. The optimiser is not: the scripted engine has no weights, so each update writes an empty
folder in the place of a LoRA adapter. Put yours into `train`.
"""

import json
import os
import pathlib
import tempfile

from paddock_rl import Paddock, advantages

VAULT = pathlib.Path(__file__).resolve().parents[1] / "environments" / "vault"
STEPS = int(os.environ.get("STEPS", "2"))
# The guide is updated at each step, the opener at each second one: their weights are counted by themselves.
EVERY = {"opener": 2, "guide": 1}
adapters = pathlib.Path(os.environ.get("ADAPTERS") or tempfile.mkdtemp(prefix="adapters-"))


def train(policy, version, groups):
    """Your optimiser. What it gets are the rows of this policy alone, each with the advantage of its rollout among those of the policy."""
    tokens = 0
    for group, found in groups:
        by_row = {row.row_id: row for row in found.rows}
        for row in group.trainable():
            assert by_row[row.row_id].advantage is not None
            tokens += row.trained_tokens
    path = adapters / f"{policy}-{version}"
    path.mkdir(parents=True, exist_ok=True)
    return tokens, {"name": path.name, "path": str(path)}


paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
asked = {"tasks": str(VAULT / "tasks"), "environment": "vault", "harness": "opener", "staleness": {"max": 2, "mode": "gate"}}
with paddock.run("two-agents", purpose="train", groups_per_step=2, **asked) as run:
    run.attach()
    version = dict.fromkeys(EVERY, 0)
    # What a policy trains at its next update.
    owed = {policy: [] for policy in EVERY}
    for step in range(STEPS):
        run.submit([{"group_id": f"step-{step}-{name}", "task": name, "n": 3} for name in ("north", "south")])
        for policy, every in EVERY.items():
            # Each round comes once for each policy, with its own rows and rewards.
            for group in run.groups(limit=2, policy=policy):
                found = advantages(group, "grpo")
                owed[policy].append((group, found))
                line = {"step": step, "policy": policy, "group": group.group_id, "version": group.policy["version"]}
                rewards = {member.rollout_id: member.reward for member in group.members}
                rows = {row.row_id: [row.rollout_id, row.session_id] for row in group.rows}
                told = {**line, "rewards": rewards, "advantages": found.by_rollout, "rows": rows}
                print(json.dumps(told), flush=True)
            if (step + 1) % every == 0:
                version[policy] += 1
                for group, found in owed[policy]:
                    run.dispose_group(group, step=step, computed=found)
                tokens, adapter = train(policy, version[policy], owed[policy])
                owed[policy] = []
                run.policy(version[policy], "live", step=step, policy=policy, adapter=adapter)
                run.metrics(step, {f"{policy}/tokens": tokens, f"{policy}/version": version[policy]})
        run.checkpoint(step)
    run.finish()
