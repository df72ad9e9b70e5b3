"""What the published environment itself says of each answer on standard input (one JSON text per line): its class, without a server and without Paddock."""

from __future__ import annotations

import json
import sys

from med_safety_gym.app import get_environment
from med_safety_gym.models import DIPGAction

for line in sys.stdin:
    environment = get_environment()
    environment.reset()
    print(json.dumps(environment.step(DIPGAction(llm_response=json.loads(line))).reward))
