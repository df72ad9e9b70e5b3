"""A lock with a code that follows from the seed, on OpenEnv's own classes for environments with MCP tools, served by OpenEnv's own server:
`python openenv_lock.py PORT`. What it says stands recorded in test/lab/openenv/frames.json.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State


class Lock(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        mcp = FastMCP("lock")
        self._code, self._open = -1, False

        @mcp.tool
        def look() -> dict[str, int]:
            """Says how many digits the code has."""
            return {"digits": 3}

        @mcp.tool
        def try_code(code: int) -> str:
            """Tries a code."""
            self._open = code == self._code
            return "open" if self._open else "higher" if code < self._code else "lower"

        super().__init__(mcp)
        self._state = State(episode_id=None, step_count=0)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Observation:
        self._code, self._open = random.Random(seed).randrange(1000), False
        return Observation(done=False, reward=None, metadata={"message": "A lock."})

    def _step_impl(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        raise ValueError("This environment has tools only.")

    async def step_async(self, action: Action, timeout_s: float | None = None, **more: Any) -> Observation:
        seen = await super().step_async(action, timeout_s, **more)
        if isinstance(action, CallToolAction):
            seen.reward = 1.0 if self._open else -0.25 if action.tool_name == "try_code" else 0.0
            seen.done = self._open
        return seen

    @property
    def state(self) -> State:
        return self._state


app = create_app(Lock, CallToolAction, CallToolObservation, env_name="lock", max_concurrent_envs=1)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]))
