"""Agent Lightning trains on rollouts of your harness: its server, as its trainer asks it.

    groups = Groups(Paddock(url).run("agl", purpose="train"), harness=solve, spare=2)      # of a Paddock that was started with --engine none
    with Server(groups, n=8, port=8765) as server:      # n is actor_rollout_ref.rollout.n; agentlightning.agl_base_url is server.url
        server.wait()

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `n` equal inputs beside each other in a request | its trainer, from the reward event | a rollout that failed, without events: in no mean | model requests of their own |

Written against agentlightning 1.0.2. There

- `verl/trainer.py` 363-402: each step tells its engines (`DELETE`, `POST /api/models`), and then asks for rollouts and polls them;
- `verl/agl_rollout_manager.py` 373-424: `n` rollouts of each sample are created one after the other, with ids of its own; 468-540: events of a rollout come as triplets, and the last reward event is its reward;
- `verl/rollout_adapter.py` 525-545: a rollout without triplets is left out, and one without a reward would have `reward_fillna_value`, which is 0; `verl/config.yaml` has advantages computed once a rollout;
- `server/routes/` has the routes and `schemas.py` their bodies.

A model request is a run of tokens that trains, with everything before it as its prompt: both of its levels of aggregation train exactly those. Nothing of Agent Lightning is imported.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .convert._rows import numbers, some_rows, trained_runs
from .groups import Asked, Groups, MultiRow, NoNumber, OpenRollout, Refused, Steps, check_temperature, chosen
from .rows import Group, Member, Row

__all__ = ["Groups", "MultiRow", "NoNumber", "OpenRollout", "Refused", "Server"]

_FAILED = "failed"
_OVER = ("succeeded", _FAILED)


@dataclass
class _Rollout:
    """What the trainer calls a rollout."""

    rollout_id: str
    asked: Mapping[str, Any]
    created_at: float
    state: str = "queuing"
    updated_at: float = 0.0
    error: str | None = None
    version: int = 1
    events: list[dict[str, Any]] = field(default_factory=list)

    def move(self, state: str, error: str | None = None) -> None:
        self.state, self.error, self.updated_at, self.version = state, error, time.time(), self.version + 1

    def body(self) -> dict[str, Any]:
        status = {"state": self.state, "last_attempt_id": "0", "error_message": self.error, "version": self.version}
        about = {"rollout_id": self.rollout_id, "input": self.asked.get("input"), "is_train": True}
        config, metadata = self.asked.get("config") or {}, self.asked.get("metadata") or {}
        return {**about, "config": config, "metadata": metadata, "status": {**status, "created_at": self.created_at, "updated_at": self.updated_at}}


class _Answer(Exception):
    """A status that is none of success, and what is said beside it."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Server:
    """Agent Lightning's server in this process, on a port of the loopback unless `host` says another. `groups` is of a run that nobody has attached to; `key` is `agl_key`. `temperature` is that of the
    trainer, `prompt` makes what the harness gets of an input, `at_once` groups are done side by side. `resume_step` is the step of the checkpoint that the trainer goes on from.

    Rows are said to be `used` when the next step asks, and the last ones with `steps.finish()`; `steps.checkpoint(step)` is yours.
    """

    def __init__(
        self,
        groups: Groups,
        n: int,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        prompt: Callable[[Any], Any] = lambda asked: asked,
        temperature: float = 1.0,
        resume_step: int | None = None,
        at_once: int = 64,
        method: str | None = None,
    ) -> None:
        if n < 1 or at_once < 1:
            raise Refused("number", "n and at_once are 1 or more.")
        if key == "" and host not in ("127.0.0.1", "::1", "localhost"):
            raise Refused("key", f"whoever reaches {host} could ask. Fix: give key.")
        self.groups = groups
        self.steps = Steps(groups.run, method=method)
        self._n = n
        self._key = key
        self._prompt = prompt
        self._temperature = temperature
        self._resume_step = resume_step
        self._step = -1 if resume_step is None else resume_step
        self._told = False
        self._engines: list[str] = []
        self._rollouts: dict[str, _Rollout] = {}
        self._ended: list[str] = []
        self._lock = threading.RLock()
        self._pool = ThreadPoolExecutor(at_once, "paddock-group")
        self._http = ThreadingHTTPServer((host, port), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://{host}:{self._http.server_address[1]}"
        """What `agl_base_url` is."""
        self._serving = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._serving.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Until it is closed by another thread, or interrupted."""
        self._serving.join()

    def close(self) -> None:
        """Serves no more, and ends its threads."""
        self._http.shutdown()
        self._http.server_close()
        self._pool.shutdown(cancel_futures=True)
        self.groups.close()

    def answer(self, method: str, path: str, query: Mapping[str, Sequence[str]], body: Any) -> tuple[int, Any]:
        """The answer to a request. Raises `_Answer`."""
        if (method, path) == ("DELETE", "/api/models"):
            return 200, {"status": "ok"}
        if (method, path) == ("POST", "/api/models"):
            return 201, self._models(body)
        if (method, path) == ("POST", "/api/rollouts"):
            return 201, [one.body() for one in self._create(body)]
        if (method, path) == ("GET", "/api/rollouts/terminal"):
            return 200, self._terminal(int(query.get("after", ["0"])[0]), int(query.get("limit", ["1000"])[0]))
        if found := re.fullmatch(r"/api/rollouts/([^/]+)(/events|/attempt/[^/]+/events)?", path):
            return self._of_rollout(method, found[1], found[2], query, body)
        if path.startswith("/proxy/"):
            raise _Answer(501, "rollouts call Paddock and no gateway here. Fix: train synchronously (agentlightning.async_rollout.enabled off).")
        raise _Answer(404, f"there is no {method} {path}")

    def _models(self, models: Sequence[Mapping[str, Any]]) -> Any:
        with self._lock:
            self._engines = [str(model["endpoint"]) for model in models]
            self._told = True
        return models

    def _tell_engines(self) -> None:
        self.groups.run.engines(self._engines)

    def _of_rollout(self, method: str, name: str, rest: str | None, query: Mapping[str, Sequence[str]], body: Any) -> tuple[int, Any]:
        with self._lock:
            if method == "DELETE" and rest is None:
                self._rollouts.pop(name, None)
                return 204, None
            one = self._rollouts.get(name)
            if one is None:
                raise _Answer(404, f"Rollout not found: {name}")
            if method == "GET" and rest is None:
                return 200, {"rollout": one.body(), "attempts": ["0"] if one.events else []}
            if method == "GET" and rest == "/events":
                kind = query.get("event_type", [None])[0]
                shown = [_triplet(each) for each in one.events] if query.get("format") == ["triplet"] else one.events
                return 200, [each for each in shown if kind in (None, each["event_type"])]
            if method == "POST" and rest is not None and rest != "/events":
                if body.get("event_type") in ("reward", "model_request"):
                    raise _Answer(409, "rewards and model requests are those that Paddock has recorded. Fix: let the harness give the reward.")
                one.events.append(_event(name, str(body["event_type"]), body.get("data") or {}))
                return 200, one.events[-1]
        raise _Answer(405, f"{method} is not for {rest or 'a rollout'}")

    def _create(self, asked: Sequence[Mapping[str, Any]]) -> list[_Rollout]:
        with self._lock:
            known = [self._rollouts.get(str(each.get("rollout_id"))) for each in asked]
            if all(one is not None for one in known):
                # Sent again because its answer was lost.
                return [one for one in known if one is not None]
            if any(not each.get("is_train", True) for each in asked):
                raise _Answer(422, "evaluation: rollouts of the trainer's validation would be trained. Fix: val_before_train and test_freq off; use run.eval.")
            blocks = []
            for _, same in groupby(asked, key=lambda each: json.dumps(each.get("input"), sort_keys=True)):
                members = list(same)
                if len(members) % self._n:
                    raise _Answer(422, f"{len(members)} rollouts of one input are no groups of {self._n}. Fix: n is actor_rollout_ref.rollout.n.")
                blocks += [members[at : at + self._n] for at in range(0, len(members), self._n)]
            if self._told or self._step < 0:
                # It has told its engines since it last asked: this is another step.
                self._step, self._told = self._step + 1, False
            self.steps.at(self._step, self._step, self._resume_step, self._tell_engines)
            made = []
            for members in blocks:
                block = [_Rollout(str(each["rollout_id"]), each, time.time()) for each in members]
                self._rollouts.update({one.rollout_id: one for one in block})
                made += block
                self._pool.submit(self._do, block, self._step)
            return made

    def _do(self, block: list[_Rollout], step: int) -> None:
        """The rollouts of one group, from beginning to end."""
        self._say(block, [("running", None, [])] * self._n)
        try:
            (group,) = self.groups.settled([Asked(self._prompt(block[0].asked.get("input")), self._n)], step)
            if group is None:
                raise NoNumber("no rollout of the group has a number after all attempts. Fix: more spare.")
            found, given = self._outcomes(group, block)
            self.steps.gave(step, group, given)
        except Exception as error:
            found = [(_FAILED, f"{type(error).__name__}: {error}", [])] * self._n
        self._say(block, found)

    def _outcomes(self, group: Group, block: list[_Rollout]) -> tuple[list[tuple[str, str | None, list[dict[str, Any]]]], list[str]]:
        """What becomes of each rollout, and the rows that are given."""
        found: list[tuple[str, str | None, list[dict[str, Any]]]] = []
        given: list[str] = []
        members: list[Member | None] = list(chosen(group, self._n))
        for one, member in zip(block, members + [None] * (self._n - len(members)), strict=True):
            if member is None or member.number is None:
                why = "it was not begun" if member is None else member.out or "no_number"
                found.append((_FAILED, f"the rollout has no number ({why})", []))
                continue
            rows = some_rows(group, member, "Agent Lightning")
            for row in rows:
                check_temperature(row, self._temperature)
            events = [_event(one.rollout_id, "model_request", data) for row in rows for data in _requests(row)]
            events.append(_event(one.rollout_id, "reward", {"value": member.number, "source": "paddock"}))
            given += [row.row_id for row in rows]
            found.append(("succeeded", None, events))
        return found, given

    def _say(self, block: list[_Rollout], found: list[tuple[str, str | None, list[dict[str, Any]]]]) -> None:
        with self._lock:
            for one, (state, error, events) in zip(block, found, strict=True):
                one.events += events
                one.move(state, error)
                if state in _OVER:
                    self._ended.append(one.rollout_id)

    def _terminal(self, after: int, limit: int) -> dict[str, Any]:
        with self._lock:
            names = self._ended[after : after + limit]
            items = [self._rollouts[name] for name in names if name in self._rollouts]
            shown = [{"rollout_id": one.rollout_id, "state": one.state, "data_id": _data_id(one), "is_train": True} for one in items]
            return {"items": shown, "next_after": after + len(names), "total_terminal": len(self._ended)}


def _data_id(one: _Rollout) -> str:
    asked = one.asked.get("input")
    return str(asked.get("data_id") or asked.get("instance_id") or "") if isinstance(asked, Mapping) else ""


def _event(rollout: str, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"event_type": kind, "rollout_id": rollout, "attempt_id": "0", "timestamp": time.time(), "data": dict(data)}


def _requests(row: Row) -> list[dict[str, Any]]:
    """A model request for each run of tokens that trains."""
    ids, logprobs = list(row.token_ids), numbers(row)
    versions = {at: low for start, end, low, _ in row.versions for at in range(start, end)}
    found = []
    for start, end in trained_runs(row):
        told = [{"logprob": value} for value in logprobs[start:end]]
        choice = {"index": 0, "token_ids": ids[start:end], "logprobs": {"content": told}, "finish_reason": None}
        server = {"model": "paddock", "version": versions.get(start)}
        response = {"prompt_token_ids": ids[:start], "choices": [choice]}
        found.append({"request": {}, "response": response, "server": server, "model_version": versions.get(start), "http_status": 200, "status": "ok"})
    return found


def _triplet(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event as the trainer reads it: `server/routes/events.py`, `_to_triplet_format`."""
    data = event["data"]
    if event["event_type"] != "model_request":
        return event
    (choice,) = data["response"]["choices"]
    told = [each["logprob"] for each in choice["logprobs"]["content"]]
    ids = {"prompt_token_ids": data["response"]["prompt_token_ids"], "response_token_ids": choice["token_ids"], "response_log_probs": told}
    return {**event, "data": {**ids, "server": data["server"], "http_status": 200, "status": "ok"}}


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            asked = urlsplit(self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if asked.path == "/healthz":
                    status, found = 200, {"status": "ok"}
                else:
                    self._check()
                    status, found = server.answer(self.command, asked.path, parse_qs(asked.query), json.loads(sent) if sent else {})
            except _Answer as refused:
                status, found = refused.status, {"detail": str(refused)}
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                status, found = 422, {"detail": f"{type(error).__name__}: {error}"}
            except Exception as error:
                status, found = 500, {"detail": f"{type(error).__name__}: {error}"}
            body = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            if found is not None:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_PATCH = _respond

        def _check(self) -> None:
            key = server._key
            told = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("X-Api-Key", "")
            if key and not hmac.compare_digest(told.encode(), key.encode()):
                raise _Answer(401, "Invalid or missing API key")

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
