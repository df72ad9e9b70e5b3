"""An agent server as a project has it in `responses_api_agents/paddock/app.py`, whose harness is served.py's: two calls, and an end for each place of a group."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "test/real")]

from paddock_rl import Paddock  # noqa: E402
from paddock_rl.nemo_gym import Groups, agent  # noqa: E402
from served import EACH, Script  # noqa: E402


def groups(config: Mapping[str, Any]) -> Groups:
    run = Paddock(os.environ["PADDOCK_CONTROL_URL"]).run(os.environ["RUN"], purpose="train")
    run.attach()
    run.engines([config["policy_base_url"]])
    harness = Script()
    return Groups(run, harness=lambda opened: harness(Text(opened)))


class Text:
    """A rollout whose prompt is the text of its one message."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened
        self.prompt = opened.prompt[0]["content"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)


PaddockAgent = agent(groups, EACH, null="masked_mean", several="main_chain")

if __name__ == "__main__":
    PaddockAgent.run_webserver()
