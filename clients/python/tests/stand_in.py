"""A server that answers by script and remembers what it was asked: for faults that a real Paddock does not show on request."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes]


class Asked:
    """A request as it came."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.method = handler.command
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        length = int(self.headers.get("content-length", 0))
        self.raw = handler.rfile.read(length)
        self.body: Any = json.loads(self.raw) if self.raw else None
        self.handler = handler

    def drop(self) -> None:
        """The connection breaks, and no answer was sent."""
        self.handler.connection.shutdown(socket.SHUT_RDWR)


Answering = Callable[[Asked], Reply | None]


def says(body: Any, status: int = 200, **headers: str) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, {"content-type": "application/json", **headers}, content


def refuses(status: int, code: str, message: str = "no", headers: dict[str, str] | None = None, **more: Any) -> Reply:
    return says({"error": {"code": code, "message": message}, **more}, status, **(headers or {}))


class StandIn:
    """Answers each route with what `on` gave for it; a list is taken one by one, its last entry again and again."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.seen: queue.Queue[Asked] = queue.Queue()
        self._answers: dict[str, list[Reply | Answering]] = {}
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                asked = Asked(self)
                reply = outer.take(asked)
                if reply is None:
                    self.close_connection = True
                    return
                status, headers, body = reply
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, route: str, *answers: Reply | Answering) -> None:
        """`route` is a method and a path without its query."""
        self._answers[route] = list(answers)

    def take(self, asked: Asked) -> Reply | None:
        route = f"{asked.method} {asked.path.split('?')[0]}"
        with self._lock:
            self.asked.append(asked)
            answers = self._answers.get(route)
            answer = None if not answers else answers.pop(0) if len(answers) > 1 else answers[0]
        self.seen.put(asked)
        if answer is None:
            return refuses(404, "NOT_FOUND", f"no script for {route}")
        if isinstance(answer, tuple):
            return answer
        return answer(asked)

    def bodies(self, route: str) -> list[Any]:
        return [asked.body for asked in self.asked if f"{asked.method} {asked.path.split('?')[0]}" == route]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
