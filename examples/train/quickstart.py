"""One group, from asking to training, beside `./paddock serve`: PADDOCK_CONTROL_URL and PADDOCK_CONTROL_TOKEN say where it is.

The harness is your own, here one request long; Paddock records it, and hands out what was sampled once the group has settled.
"""

import json
import os
import urllib.request

from paddock_rl import Paddock, advantages, to_trl

paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
with paddock.run(purpose="train") as run:
    run.attach()
    group_id = f"{run.run_id}-sum"
    run.submit({"group_id": group_id, "task": {"name": "sum", "instruction": "Add 2 and 2."}, "n": 4})
    for slot in range(4):
        opened = paddock.open_rollout(group_id, idempotency_key=f"sum-{slot}")
        body = json.dumps({"model": "policy", "messages": [{"role": "user", "content": "Add 2 and 2."}]}).encode()
        headers = {"authorization": f"Bearer {opened['key']}", "content-type": "application/json"}
        asked = urllib.request.Request(f"{opened['base_url']}/chat/completions", body, headers)
        answer = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"]
        paddock.end_rollout(opened["rollout_id"], verdict={"source": "checker", "reward": float(len(answer) % 3)})
    for group in run.groups(limit=1):
        found = advantages(group, "grpo")
        print(f"rewards {[member.reward for member in group.members]}, advantages {list(found.by_rollout.values())}")
        print(f"{sum(row.trained_tokens for row in group.rows)} tokens to train; as TRL takes them: {list(to_trl(group))}")
        run.dispose_group(group, step=0, computed=found)
    run.checkpoint(0)
    run.finish()
