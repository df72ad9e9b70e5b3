"""Works on a task that Paddock serves, with OpenEnv's own clients: `python openenv_served.py URL CLIENT`, CLIENT being `generic` or `mcp`; what is to be done comes as
JSON on standard input. Prints what came of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

url, client = sys.argv[1:3]
asked = json.load(sys.stdin)
submit = {"type": "call_tool", "tool_name": "submit", "arguments": {}}


def generic() -> dict[str, Any]:
    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient(base_url=url, message_timeout_s=600).sync() as env:
        start = env.reset(task=asked["task"])
        tools = [each["name"] for each in env.step({"type": "list_tools"}).observation["tools"]]
        errors = [env.step({"type": "call_tool", **call}).observation["error"] for call in asked["calls"]]
        steps = env.state()["step_count"]
        end = env.step(submit)
        again = env.reset(task=asked["task"])
        return {
            "start": start.observation,
            "tools": tools,
            "errors": errors,
            "steps": steps,
            "rewards": [start.reward, end.reward, env.step(submit).reward],
            "done": [start.done, end.done, again.done],
        }


def mcp() -> dict[str, Any]:
    from openenv.core.env_server.mcp_types import CallToolAction
    from openenv.core.mcp_client import MCPToolClient

    with MCPToolClient(base_url=url, message_timeout_s=600).sync() as env:
        start = env.reset(task=asked["task"])
        tools = [each.name for each in env.list_tools()]
        answers = [env.call_tool(call["tool_name"], **call["arguments"]) for call in asked["calls"]]
        end = env.step(CallToolAction(tool_name="submit", arguments={}))
        return {"tools": tools, "answers": answers, "steps": env.state().step_count, "rewards": [start.reward, end.reward], "done": [start.done, end.done]}


print(json.dumps(generic() if client == "generic" else mcp()))
