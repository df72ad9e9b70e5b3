"""What the published environment itself earns for each answer on standard input (one JSON text per line), run as verifiers runs it: its own client asks a chat server, which
says that answer. No Paddock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import verifiers as vf
from openai import AsyncOpenAI
from verifiers.clients import OpenAIChatCompletionsClient


class Model(BaseHTTPRequestHandler):
    answer = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": Model.answer}, "finish_reason": "stop"}
        body = json.dumps({"id": "one", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


async def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = OpenAIChatCompletionsClient(AsyncOpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none"))
    env = vf.load_environment("sophistry-bench-sprint", n_items=1)
    for line in sys.stdin:
        Model.answer = json.loads(line)
        print((await env.run_rollout(env.get_dataset()[0], client, "m", {}))["reward"])


asyncio.run(main())
