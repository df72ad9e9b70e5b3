"""Compares answers by math-verify, for process.ts: {"rule": {"args": [gold]}, "answer"} in each line of stdin. One line each comes back:
{"ready": true} once, then {"result": {"value", "why"}} or {"fault"}; {"missing"} in place of all that where the package cannot be used."""

import json
import os
import resource
import signal
import sys
from importlib.metadata import version

wanted, alarm_s = sys.argv[1], int(sys.argv[2])
replies = os.fdopen(os.dup(1), "w")
# What a library prints is no reply.
os.dup2(2, 1)


def reply(message):
    print(json.dumps(message), file=replies, flush=True)


def value(gold, answer):
    # math-verify's own time-outs would say no. The parent has a deadline, and the alarm below ends this process if the parent is gone.
    o = {"parsing_timeout": None, "raise_on_error": True}
    golds = parse(gold if "\\boxed" in gold else f"\\boxed{{{gold}}}", **o)
    if not golds:
        raise ValueError("nothing is found in the gold")
    return int(verify(golds, parse(answer, **o), timeout_seconds=None, raise_on_error=True))


try:
    if version("math-verify") != wanted:
        raise ImportError(f"its version is {version('math-verify')}")
    from math_verify import parse, verify

    value("1", "1")
except Exception as error:
    reply({"missing": str(error)})
    sys.exit(1)

# A text must not take the machine's memory or disk.
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
reply({"ready": True})
for line in sys.stdin:
    asked = json.loads(line)
    # Without a handler the alarm ends the process, also while C computes.
    signal.alarm(alarm_s)
    try:
        reply({"result": {"value": value(asked["rule"]["args"][0], asked["answer"]), "why": ""}})
    except Exception as error:
        reply({"fault": f"it raised {type(error).__name__}: {error}"[:300]})
    signal.alarm(0)
