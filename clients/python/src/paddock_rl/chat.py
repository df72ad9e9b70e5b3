"""A chat route in front of an engine that takes ids in this process: what a harness behind Paddock calls where the trainer's engine has no server.

It answers as vLLM does, with the ids of prompt and answer and the logprob of each sampled token. The prompt is the tokenizer's own template, so what Paddock
records is what the engine got. No tools: what reads them out of an answer is a part of a server.
"""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NO_TOOLS = "the chat route in front of the trainer's engine parses no tool calls. Fix: a harness that takes text, or a server with a tool parser."


class Chat:
    """`engine.generate(ids, params)` is awaited on `loop`; `params` are the trainer's, of which a request may say temperature, top_p and max_tokens."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Any, tokenizer: Any, params: Any, max_length: int) -> None:
        self._loop = loop
        self._engine = engine
        self._tokenizer = tokenizer
        self._params = params
        self._most = max_length
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(*outer._look(self.path.split("?")[0]))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if self.path.split("?")[0] != "/v1/chat/completions":
                    self.reply(404, _error("no such route"))
                    return
                self.reply(*outer._chat(body))

            def reply(self, status: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="paddock-chat", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _look(self, path: str) -> tuple[int, dict[str, Any]]:
        match path:
            case "/v1/models":
                return 200, {"data": [{"id": "policy", "max_model_len": self._most}]}
            case "/health":
                return 200, {}
            case "/version":
                return 200, {"version": "0.32.0"}
            case "/server_info":
                # vLLM's logprobs are of before the temperature where nothing else is said; trainers count with temperature 1 then.
                return 200, {"vllm_config": {"logprobs_mode": "raw_logprobs", "generation_config": "vllm", "vocab_size": len(self._tokenizer)}}
        return 404, _error("no such route")

    def _chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body.get("tools"):
            return 400, _error(_NO_TOOLS)
        if body.get("stream"):
            return 400, _error("the chat route in front of the trainer's engine answers whole. Fix: a harness that does not stream.")
        prompt = self._tokenizer.apply_chat_template(body["messages"], tokenize=True, add_generation_prompt=True, return_dict=False)
        room = self._most - len(prompt)
        if room < 1:
            return 400, _error(f"This model's maximum context length is {self._most} tokens. However, your messages resulted in {len(prompt)} tokens.")
        params = deepcopy(self._params)
        params.temperature = body.get("temperature", params.temperature)
        params.top_p = body.get("top_p", 1.0)
        params.max_tokens = min(body.get("max_completion_tokens") or body.get("max_tokens") or room, room)
        params.logprobs = params.logprobs or 1
        output = asyncio.run_coroutine_threadsafe(self._engine.generate(prompt, params), self._loop).result().outputs[0]
        ids = list(output.token_ids)
        logprobs = [found[id_].logprob for id_, found in zip(ids, output.logprobs, strict=True)]
        told = [{"token": f"token_id:{id_}", "logprob": value, "bytes": None, "top_logprobs": []} for id_, value in zip(ids, logprobs, strict=True)]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self._tokenizer.decode(ids, skip_special_tokens=True)},
            "finish_reason": output.finish_reason,
            "logprobs": {"content": told},
            "token_ids": ids,
        }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)}
        about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": 0, "model": "policy"}
        return 200, {**about, "choices": [choice], "usage": usage, "prompt_token_ids": prompt}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "code": 400}}
