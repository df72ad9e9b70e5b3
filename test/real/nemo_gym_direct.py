"""What the published resources server itself says of each script on standard input (a JSON list of steps per line) in the first of its example rows: its class is asked, no server. No Paddock."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

from nemo_gym.server_utils import ServerClient  # noqa: E402
from resources_servers.example_multi_step import app  # noqa: E402


async def main() -> None:
    row = json.loads(Path(app.__file__).with_name("data").joinpath("example.jsonl").read_text().splitlines()[0])
    config = app.ExampleMultiStepResourcesServerConfig(name="one", host="127.0.0.1", port=1, entrypoint="app.py", domain="other")
    server = app.ExampleMultiStepResourcesServer(config=config, server_client=ServerClient.model_construct())
    for line in sys.stdin:
        calls = [step for step in json.loads(line) if "tool" in step]
        output = [{"type": "function_call", "call_id": str(at), "name": step["tool"], "arguments": json.dumps(step["args"])} for at, step in enumerate(calls)]
        response = {"id": "r", "object": "response", "created_at": 0, "model": "m", "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "output": output}
        found = await server.verify(app.ExampleMultiStepVerifyRequest.model_validate({**row, "response": response}))
        print(found.reward)


asyncio.run(main())
