"""One attempt in an environment of `verifiers` (0.1.14 to 0.3.1: those with `load_environment`), asked over HTTP on a port of the loopback.

The environment's own loop runs, unchanged: set-up, tools, stop conditions, scoring. What it takes for its model's client is the agent, wherever that is:
each answer of the model is an act that Paddock tells of, and what the environment would have asked the model next is what the act came to.

SPEC in the environment is {"load", "args", "judge"}; PORT is where to listen. `GET /health` answers once the environment is loaded. `POST` takes and gives JSON;
a status of 500 is a fault of the environment, with `fault`; 422 is an environment that cannot be used so, with `refused`.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import verifiers as vf

SPEC = json.loads(os.environ["SPEC"])


class Unfit(Exception):
    """The environment, or a row of it, is not one that an agent of its own can work in."""


class Fault(Exception):
    """Something failed that is not the agent's."""


def rubrics(rubric: Any) -> Iterator[Any]:
    yield rubric
    for inner in getattr(rubric, "rubrics", ()):
        yield from rubrics(inner)


class Loaded:
    """The environment, and why it cannot be used."""

    def __init__(self) -> None:
        if not hasattr(vf, "load_environment"):
            raise Unfit(f"verifiers {vf.__version__} has no load_environment. Fix: install verifiers 0.3.1 or older beside it.")
        self.env = vf.load_environment(SPEC["load"], **SPEC["args"])
        # What verifiers itself would count as 0.
        self.raised: list[str] = []
        for rubric in rubrics(self.env.rubric):
            if rubric.has_group_rewards and not hasattr(rubric, "rubrics"):
                raise Unfit("its rubric scores several rollouts beside each other, and each is scored alone here.")
            if hasattr(rubric, "judge_client"):
                self._give_judge(rubric)
            rubric.funcs = [self._watched(func) for func in rubric.funcs]

    def _give_judge(self, rubric: Any) -> None:
        judge = SPEC["judge"]
        if judge is None:
            raise Unfit("its rubric asks a model to judge, and none is given. Fix: give `judge: {url, model}`, an OpenAI-compatible server.")
        from openai import AsyncOpenAI

        rubric.judge_client = AsyncOpenAI(base_url=judge["url"], api_key=judge.get("key") or "none")
        rubric.judge_model = judge["model"]
        rubric.class_objects.update(judge_client=rubric.judge_client, judge_model=rubric.judge_model)

    def _watched(self, func: Callable[..., Any]) -> Callable[..., Any]:
        def told(error: Exception) -> None:
            self.raised.append(f"{getattr(func, '__name__', func)} raised {type(error).__name__}: {error}")

        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def later(*given: Any, **named: Any) -> Any:
                try:
                    return await func(*given, **named)
                except Exception as error:
                    told(error)
                    raise

            return later

        @functools.wraps(func)
        def now(*given: Any, **named: Any) -> Any:
            try:
                return func(*given, **named)
            except Exception as error:
                told(error)
                raise

        return now

    def rows(self, dataset: str, first: int, count: int | None) -> dict[str, Any]:
        found = self.env.get_dataset() if dataset == "train" else self.env.get_eval_dataset()
        end = len(found) if count is None else min(first + count, len(found))
        return {"total": len(found), "rows": [self._row(found[at], at) for at in range(first, end)]}

    def _row(self, row: dict[str, Any], at: int) -> dict[str, Any]:
        try:
            json.dumps(row)
        except TypeError as error:
            raise Unfit(f"row {at} of its dataset is not JSON: {error}") from error
        own = row.get("info")
        own = json.loads(own) if isinstance(own, str) and own else own
        tools = (own or {}).get("tool_defs") or self.env.tool_defs
        return {"at": at, "row": row, **shown(row["prompt"], at), "tools": offered(tools), "speaks": self._speaks()}

    def _speaks(self) -> bool:
        """Whether it answers words: then an agent has to say some before its last."""
        return not isinstance(self.env, (vf.SingleTurnEnv, vf.ToolEnv))


def text_of(content: Any) -> str | None:
    """None: there is something else than text in it."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = [part.get("text") if part.get("type") == "text" else None for part in content]
    return None if None in texts else "".join(texts)


def shown(prompt: Any, at: int) -> dict[str, Any]:
    """What the agent is shown of a prompt: the system's words, and the user's."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    roles = [each.get("role") for each in messages]
    texts = [text_of(each.get("content")) for each in messages]
    if None in texts:
        raise Unfit(f"the prompt of row {at} has something else than text in it.")
    if roles not in (["user"], ["system", "user"]):
        raise Unfit(f"the prompt of row {at} is a conversation ({', '.join(map(str, roles))}), and an agent begins its own.")
    return {"system": texts[0] if len(texts) == 2 else None, "user": texts[-1]}


def offered(tools: Any) -> list[dict[str, Any]]:
    return [{"name": each.name, "description": each.description or each.name, "inputSchema": each.parameters} for each in tools or ()]


class Agent(vf.Client):
    """The client of a model whose answers come from elsewhere."""

    def __init__(self) -> None:
        super().__init__(object())
        self.asked: asyncio.Queue[list[Any]] = asyncio.Queue()
        self.acts: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def get_response(self, prompt: Any, model: str, *_: Any, **__: Any) -> Any:
        self.asked.put_nowait(prompt)
        act = await self.acts.get()
        if act is None:
            # The one way to end a conversation that is no error to the environment.
            raise vf.OverlongPromptError("the agent has gone")
        types = importlib.import_module(vf.Client.__module__.replace("clients.client", "types"))
        called = act.get("tool_calls")
        message = types.ResponseMessage(content=act["content"], tool_calls=called, finish_reason="tool_calls" if called else "stop", is_truncated=False)
        return types.Response(id="act", created=0, model=model, usage=None, message=message)

    async def nothing(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    setup_client = to_native_tool = to_native_prompt = get_native_response = raise_from_native_response = from_native_response = close = nothing


Agent.__abstractmethods__ = frozenset()


class Attempt:
    """The environment's loop, and the agent that acts in it."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.agent = Agent()
        self.calls = 0
        self.seen: list[Any] = []
        self.run: asyncio.Task[Any] | None = None

    async def begin(self, row: dict[str, Any], at: int) -> dict[str, Any]:
        self.run = asyncio.create_task(self.loaded.env.run_rollout(row, self.agent, "agent", {}))
        asked = await self._next()
        if asked is None:
            raise Fault("it ended the episode before the agent could act")
        return shown(asked, at)

    async def act(self, tool: str | None, args: dict[str, Any]) -> dict[str, Any]:
        """One act: a call of a tool, or words (`tool` is None)."""
        if self.run is None or self.run.done():
            return {"over": True, "text": None}
        self.calls += 1
        before = len(self.seen)
        if tool is None:
            act = {"content": args["text"]}
        else:
            act = {"content": "", "tool_calls": [{"id": f"call_{self.calls}", "name": tool, "arguments": json.dumps(args)}]}
        self.agent.acts.put_nowait(act)
        asked = await self._next()
        if asked is not None:
            # Behind what stood there and the act itself.
            return {"over": False, "text": said(asked[before + 1 :])}
        output = self.run.result()
        whole = [*output["prompt"], *(output["completion"] or ())]
        return {"over": True, "text": said(whole[before + 1 :])}

    async def finish(self, text: str | None) -> dict[str, Any]:
        if self.run is None:
            raise Fault("there is no episode to score")
        if not self.run.done():
            self.agent.acts.put_nowait({"content": text or ""})
            if await self._next() is not None:
                self.agent.acts.put_nowait(None)
                await self.run
        output = self.run.result()
        if output.get("error") is not None:
            raise Fault(f"its episode failed: {output['error']}")
        if self.loaded.raised:
            raise Fault(f"its scoring failed: {'; '.join(self.loaded.raised)}")
        numbers = {"reward": output["reward"], **output["metrics"]}
        if not all(isinstance(each, (int, float)) and math.isfinite(each) for each in numbers.values()):
            raise Fault(f"it gave no number: {numbers}")
        return {"reward": output["reward"], "metrics": output["metrics"], "stop": output["stop_condition"], "completion": plain(output["completion"])}

    async def _next(self) -> list[Any] | None:
        """What it asks its model next; None: the episode is over. Raises what it raised."""
        assert self.run is not None
        asked = asyncio.ensure_future(self.agent.asked.get())
        await asyncio.wait({asked, self.run}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            self.seen = asked.result()
            return self.seen
        asked.cancel()
        self.run.result()
        return None


def plain(messages: Any) -> list[Any]:
    """Messages as JSON has them."""
    return [each if isinstance(each, dict) else each.model_dump(exclude_none=True) for each in messages or ()]


def said(messages: list[Any]) -> str:
    """What the environment said in these."""
    return "\n".join(text_of(each.get("content")) or "[not text]" for each in messages if each.get("role") != "assistant")


def main() -> None:
    unfit: str | None = None
    attempt: Attempt | None = None
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    try:
        loaded = Loaded()
    except Unfit as error:
        unfit = str(error)
    else:
        attempt = Attempt(loaded)

    async def answered(path: str, asked: dict[str, Any]) -> dict[str, Any]:
        if attempt is None:
            raise Unfit(unfit)
        if path == "/rows":
            return attempt.loaded.rows(**asked)
        return await {"/begin": attempt.begin, "/act": attempt.act, "/finish": attempt.finish}[path](**asked)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.say(200, {})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, answer = 200, asyncio.run_coroutine_threadsafe(answered(self.path, asked), loop).result()
            except Unfit as error:
                status, answer = 422, {"refused": str(error)}
            except Exception as error:
                traceback.print_exc()
                what = str(error) if isinstance(error, Fault) else f"raised {type(error).__name__}: {error}"
                status, answer = 500, {"fault": what}
            self.say(status, answer)

        def say(self, status: int, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()


if __name__ == "__main__":
    main()
