"""Environments on verifiers' own classes, for what no published one does: tools, words that are answered, a judge, faults. `kind` of `load_environment` says which."""

from __future__ import annotations

import os
import time
from typing import Any

import verifiers as vf
from datasets import Dataset

BOOKS = {"ann": 17, "bob": 25}


def balance(name: str) -> int:
    """Says what an account holds.

    Args:
        name: Whose account.
    """
    return BOOKS[name]


def drop_dead(name: str) -> str:
    """Ends the server."""
    os._exit(7)


def hang(name: str) -> str:
    """Does not answer."""
    time.sleep(3600)
    return ""


def right(completion: Any, answer: str) -> float:
    return 1.0 if completion[-1]["content"].strip() == answer else 0.0


def looked(completion: Any) -> float:
    return float(sum(each["role"] == "tool" for each in completion))


def broken(completion: Any) -> float:
    raise ValueError("no such ledger")


def together(states: list[Any]) -> list[float]:
    return [1.0 for _ in states]


class Guess(vf.MultiTurnEnv):
    """Its words are answered until one is right."""

    async def env_response(self, messages: Any, state: Any, **_: Any) -> Any:
        return [{"role": "user", "content": "No. Again."}]

    @vf.stop
    async def is_right(self, state: Any) -> bool:
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][-1]["content"] == state["answer"]


def load_environment(kind: str = "tools") -> vf.Environment:
    rows = [{"question": "What do Ann and Bob have together?", "answer": "42"}, {"question": "What does Ann have?", "answer": "17"}]
    given: dict[str, Any] = {"dataset": Dataset.from_list(rows), "rubric": vf.Rubric(funcs=[right, looked], weights=[1.0, 0.0])}
    if kind == "judged":
        given["rubric"] = vf.JudgeRubric()
    if kind == "judged":
        given["rubric"].add_reward_func(judged)
    if kind == "broken":
        given["rubric"] = vf.Rubric(funcs=[broken])
    if kind == "together":
        given["rubric"] = vf.Rubric(funcs=[together])
    if kind == "guess":
        return Guess(max_turns=3, **given)
    if kind in ("broken", "together", "judged"):
        return vf.SingleTurnEnv(**given)
    return vf.ToolEnv(tools=[balance, drop_dead, hang], max_turns=4, system_prompt="You keep the books.", **given)


async def judged(judge: Any, prompt: Any, completion: Any, answer: str, state: Any) -> float:
    return 1.0 if "yes" in await judge(prompt, completion, answer, state) else 0.0
