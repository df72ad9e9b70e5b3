"""One HTTP request: what it is, how it is sent, what its answer means."""

from __future__ import annotations

import contextvars
import gzip
import http.client
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .errors import CursorGone, Evaluating, Fenced, Full, Gated, Malformed, Rejected, Unanswered, Unreachable


@dataclass(frozen=True)
class Request:
    """`repeatable`: Paddock does the same when it gets it twice, so a lost answer is asked for again."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    repeatable: bool = False
    accept: str = "application/json"
    wait_s: float = 0.0
    """How long Paddock may think about it, beyond the time that any answer may take."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        found = _object(self.body)
        if found is None:
            raise Malformed(f"the answer is no JSON object: {self.body[:200]!r}")
        return found


@dataclass
class Abort:
    """Ends whatever is asked under it: its connection is closed, and nothing is tried again."""

    done: threading.Event = field(default_factory=threading.Event)
    _sockets: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def abort(self) -> None:
        with self._lock:
            self.done.set()
            sockets = list(self._sockets)
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @contextmanager
    def watching(self, sock: socket.socket) -> Iterator[None]:
        """Closes the socket if it ends in here."""
        with self._lock:
            if self.done.is_set():
                raise Unanswered("given up")
            self._sockets.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(sock)


current_abort: contextvars.ContextVar[Abort | None] = contextvars.ContextVar("current_abort", default=None)
"""Whose requests these are: set by whoever may want to end them."""


class Transport:
    """Sends requests, each over a connection of its own, so that none is written to one that Paddock has just closed.

    What never arrived is sent again for `patience_s`, and so is a repeatable request without a whole answer, or with a 503: Paddock
    may be starting again. Everything else is told to the caller.
    """

    def __init__(
        self, url: str, token: str, *, timeout_s: float = 60.0, patience_s: float = 60.0, tls: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(
                f"{url!r} is no address of a control listener. Fix: http://127.0.0.1:8791, or what `paddock serve` says."
            )
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._base = parts.path.rstrip("/")
        # On one machine squeezing takes longer than sending.
        self._encoding = "identity" if parts.hostname in _HERE else "gzip"
        self._token = token
        self._timeout_s = timeout_s
        self._patience_s = patience_s

    def send(self, request: Request) -> Answer:
        """The answer, if it is a good one; else a typed error."""
        abort = current_abort.get() or Abort()
        ends = time.monotonic() + self._patience_s
        pause = 0.1
        while True:
            try:
                answer = self._once(request, abort)
                if answer.status < 400:
                    return answer
                error: Exception = _rejected(answer)
                again = answer.status == 503 and request.repeatable
            except Unreachable as unreachable:
                error, again = unreachable, True
            except Unanswered as unanswered:
                error, again = unanswered, request.repeatable
            if not again or abort.done.is_set() or time.monotonic() + pause > ends:
                raise error
            abort.done.wait(pause * (0.5 + random.random()))
            pause = min(pause * 2, 5.0)

    def _once(self, request: Request, abort: Abort) -> Answer:
        timeout = self._timeout_s + request.wait_s
        connection = self._connection(timeout)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unreachable(f"no connection to {self._host}:{self._port}: {error}. Is `paddock serve` running?") from error
            with abort.watching(connection.sock):
                try:
                    return self._exchange(connection, request)
                except (OSError, http.client.HTTPException, EOFError) as error:
                    raise Unanswered(f"{request.method} {request.path} got no whole answer: {error!r}") from error
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Answer:
        headers = {
            "authorization": f"Bearer {self._token}",
            "accept": request.accept,
            "accept-encoding": self._encoding,
            "connection": "close",
        }
        body = None if request.body is None else json.dumps(request.body, allow_nan=False).encode()
        if body is not None:
            headers["content-type"] = "application/json"
        connection.request(request.method, self._base + request.path, body, headers)
        response = connection.getresponse()
        content = response.read()
        if response.headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


_HERE = ("localhost", "127.0.0.1", "::1")

_Make = Callable[[int, str, str, Mapping[str, Any]], Rejected]
_BY_CODE: Mapping[str, _Make] = {"FENCED": Fenced, "GATE": Gated, "EVAL_RUNNING": Evaluating}


def _rejected(answer: Answer) -> Rejected:
    body = _object(answer.body) or {}
    error = body.get("error")
    told = error if isinstance(error, dict) else {}
    code = str(told.get("code", "UNKNOWN"))
    message = str(told.get("message", answer.body[:200].decode("utf-8", "replace")))
    if told.get("fix"):
        message = f"{message} Fix: {told['fix']}"
    if answer.status == 429:
        return Full(answer.status, code, message or "there is no room now", body, _seconds(answer.headers.get("retry-after")))
    if answer.status == 410:
        return CursorGone(answer.status, code, message, body)
    return _BY_CODE.get(code, Rejected)(answer.status, code, message, body)


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 1))
    except ValueError:
        return 1.0


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
