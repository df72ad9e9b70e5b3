"""A resources server as NeMo Gym 0.7.0 serves `resources_servers.example_multi_step`, for machines without it, and one that fails in ways that can be asked for (`fault` of its
settings). `npm run real` puts the same rows through the real one.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = os.environ["NEMO_GYM_CONFIG_PATH"]
CONFIG = json.loads(os.environ["NEMO_GYM_CONFIG_DICT"])
(SETTINGS,) = CONFIG[NAME]["resources_servers"].values()
FAULT = SETTINGS.get("fault")
SESSIONS: set[str] = set()
if FAULT == "does not start":
    raise SystemExit("no such dataset")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.say(200, {"status": "ok"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        cookie = self.headers.get("Cookie", "").removeprefix("session=")
        if self.path == "/seed_session":
            # Another field of the row is what a real one would look at.
            if asked["responses_create_params"] is None or FAULT == "seeds none":
                return self.say(500, "KeyError('seed')")
            session = secrets.token_hex(4)
            SESSIONS.add(session)
            return self.say(200, {"mcp": {"server_name": NAME}} if FAULT == "mcp" else {}, session)
        if cookie not in SESSIONS:
            return self.say(500, "KeyError('session')")
        if self.path == "/get_synonym_value":
            if FAULT == "dies":
                os._exit(1)
            if FAULT == "hangs":
                time.sleep(60)
            if FAULT == "fails":
                return self.say(500, "IndexError('list index out of range')")
            if not isinstance(asked.get("synonym"), str):
                return self.say(422, {"detail": [{"type": "missing", "loc": ["body", "synonym"], "msg": "Field required"}]})
            return self.say(200, {"synonym_value": sum(map(ord, asked["synonym"]))})
        if self.path == "/extract_synonym_values":
            return self.say(200, {"success": True})
        return self.verify(asked)

    def verify(self, asked: dict[str, Any]) -> None:
        for tools in (asked["responses_create_params"]["tools"], asked["response"]["tools"]):
            if any("strict" not in tool for tool in tools):
                return self.say(422, {"detail": [{"type": "missing", "msg": "Field required"}]})
        calls = [item for item in asked["response"]["output"] if item["type"] == "function_call"]
        actual = next((json.loads(item["arguments"])["synonym_values"] for item in reversed(calls) if item["name"] == "extract_synonym_values"), [])
        expected = asked["expected_synonym_values"]
        found = {
            **asked,
            "reward": float(actual == expected),
            "mask_sample": False,
            "failure_kind": None,
            "failure_reason": None,
            "accuracy": actual == expected,
            "set_overlap": len({*actual} & {*expected}) / len(expected),
        }
        if FAULT == "judge":
            found.update(reward=0.0, mask_sample=True, failure_kind="judge_failed", failure_reason="no route", _ng_failure_class="judge_failed")
        if FAULT == "no number":
            found["reward"] = None
        if FAULT == "raises":
            return self.say(500, "KeyError('expected')")
        self.say(200, found)

    def say(self, status: int, answer: Any, session: str | None = None) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session is not None:
            self.send_header("Set-Cookie", f"session={session}; path=/; httponly")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


ThreadingHTTPServer((SETTINGS["host"], int(SETTINGS["port"])), Handler).serve_forever()
