"""As much of verifiers 0.3.1 as the environments beside this need, for machines without it: the loop of `legacy/envs/multiturn_env.py`, the tools of
`tool_env.py`, the scoring of `rubrics/rubric.py`. `npm run real` puts the same environments through the real package.
"""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

Environment = Any


class OverlongPromptError(Exception):
    pass


class Message(dict):
    def __init__(self, **given: Any) -> None:
        super().__init__({"role": "assistant", **given})


Response = ResponseMessage = Message


class Client:
    def __init__(self, client: Any) -> None:
        pass


class Tool:
    def __init__(self, func: Any) -> None:
        names = list(inspect.signature(func).parameters)
        self.name, self.description = func.__name__, (inspect.getdoc(func) or "").split("\n")[0]
        self.parameters = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}


class Rubric:
    def __init__(self, funcs: Any = None, weights: Any = None) -> None:
        self.funcs, self.weights = list(funcs or []), list(weights or [1.0] * len(funcs or []))
        self.class_objects: dict[str, Any] = {}

    def add_reward_func(self, func: Any) -> None:
        self.funcs.append(func)
        self.weights.append(1.0)

    @property
    def has_group_rewards(self) -> bool:
        return any("states" in inspect.signature(func).parameters for func in self.funcs)

    async def score(self, state: dict[str, Any]) -> None:
        given = {**state, "state": state, **self.class_objects}
        state["reward"], state["metrics"] = 0.0, {}
        for func, weight in zip(self.funcs, self.weights):
            try:
                found = func(**{name: given[name] for name in inspect.signature(func).parameters})
                found = float(await found if inspect.isawaitable(found) else found)
            except Exception:
                found = 0.0
            state["metrics"][func.__name__] = found
            state["reward"] += found * weight


class JudgeRubric(Rubric):
    def __init__(self) -> None:
        super().__init__()
        self.judge_client = self.judge_model = None


def stop(func: Any) -> Any:
    func.stops = True
    return func


class MultiTurnEnv:
    def __init__(self, dataset: Any, rubric: Rubric, max_turns: int = -1, system_prompt: str | None = None) -> None:
        self.rubric, self.max_turns, self.tool_defs = rubric, max_turns, None
        system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
        self.rows = [{**row, "example_id": at, "prompt": [*system, {"role": "user", "content": row["question"]}]} for at, row in enumerate(dataset)]

    def get_dataset(self) -> Any:
        return self.rows

    get_eval_dataset = get_dataset

    async def run_rollout(self, row: dict[str, Any], client: Any, model: str, sampling_args: Any) -> dict[str, Any]:
        state: dict[str, Any] = {**row, "trajectory": [], "error": None, "stop_condition": None}
        messages = list(row["prompt"])
        while (state.update(stop_condition=await self._stopped(state, messages)) or state["stop_condition"]) is None:
            if state["trajectory"]:
                messages = [*messages, *await self.env_response(messages, state)]
            try:
                answer = (await client.get_response(messages, model, {}))["message"]
            except OverlongPromptError:
                state["stop_condition"] = "prompt_too_long"
                break
            messages = [*messages, answer]
            state["trajectory"].append({"completion": [answer]})
        state["completion"] = messages[len(row["prompt"]) :]
        await self.rubric.score(state)
        return {name: state[name] for name in ("prompt", "completion", "reward", "metrics", "error", "stop_condition")}

    async def _stopped(self, state: Any, messages: Any) -> str | None:
        for name in dir(type(self)):
            if getattr(getattr(self, name), "stops", False) and await getattr(self, name)(state):
                return name
        return "max_turns_reached" if 0 < self.max_turns <= len(state["trajectory"]) else None


class SingleTurnEnv(MultiTurnEnv):
    def __init__(self, **given: Any) -> None:
        super().__init__(max_turns=1, **given)


class ToolEnv(MultiTurnEnv):
    def __init__(self, tools: Any, **given: Any) -> None:
        super().__init__(**given)
        self.tool_map = {tool.__name__: tool for tool in tools}
        self.tool_defs = [Tool(tool) for tool in tools]

    @stop
    async def no_tools_called(self, state: Any) -> bool:
        return bool(state["trajectory"]) and not state["trajectory"][-1]["completion"][-1].get("tool_calls")

    async def env_response(self, messages: Any, state: Any) -> Any:
        answers = []
        for call in messages[-1]["tool_calls"]:
            try:
                content = str(self.tool_map[call["name"]](**json.loads(call["arguments"])))
            except Exception as error:
                content = str(error)
            answers.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return answers


def load_environment(load: str, **args: Any) -> Any:
    return importlib.import_module(load.replace("-", "_")).load_environment(**args)
