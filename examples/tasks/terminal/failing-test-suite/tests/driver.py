"""Runs as the agent's user: reads expressions on stdin, prints what the package makes of each. Knows no answers."""

import json
import sys

sys.path.insert(0, "/workspace")
out = sys.stdout
sys.stdout = sys.stderr
import ledger  # noqa: E402

for line in sys.stdin:
    scope = {"ledger": ledger}
    try:
        steps = json.loads(line)
        value = None
        for step in steps:
            if step.startswith("!"):
                try:
                    exec(step[1:], scope)
                except Exception as error:
                    scope["error"] = type(error).__name__
            else:
                value = eval(step, scope)
        out.write(json.dumps(["value", value]) + "\n")
    except Exception as error:
        out.write(json.dumps(["raises", type(error).__name__]) + "\n")
out.flush()
