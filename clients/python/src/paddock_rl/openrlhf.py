"""OpenRLHF trains on rollouts of your harness: its agent executor, and a chat route in front of its engine.

    # agent.py, named in train.agent_func_path
    def groups(engine: str) -> Groups:
        run = Paddock(url).run(purpose="train")        # of a Paddock that was started with --engine none
        run.attach()
        run.engines([engine])
        return Groups(run, harness=solve, spare=2)

    AgentExecutor = executor(groups, n=8)              # n is rollout.n_samples_per_prompt

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| copies of a prompt, asked for at once | OpenRLHF, from `reward` | no word for it: refused, or no action ranges and the mean of the others | refused, or the main chain |

Written against openrlhf 0.11.2. There

- `utils/agent.py` 13-16, `AgentExecutorBase.execute`; `trainer/ray/vllm_engine.py` 19-30 loads `AgentExecutor` of the file in each engine's process, and 182-206 asks for all
  samples of a prompt at once;
- `trainer/ppo_utils/samples_generator.py` 241-309 makes an `Experience` of an answer: `reward` of None has no place in a group's mean;
- the engine is a Ray actor that takes ids (`llm_engine.generate`) and has no route that a harness could call. `chat.py` puts one in front of it, with the tokenizer's template.

OpenRLHF says nothing of steps, weights or what it trains: rows are `used` once they are handed over, at step 0, and the weights are those that a hook of yours announces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any, get_args

from .chat import Chat
from .convert._rows import Null, Several
from .convert.openrlhf import response_of
from .groups import Groups, MultiRow, NoNumber, OpenRollout, Place, Refused
from .samples import Samples

__all__ = ["Groups", "MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "Several", "executor"]


def executor(open: Callable[[str], Groups], n: int, *, null: Null = "raise", several: Several = "refuse") -> Any:
    """The class to export as `AgentExecutor`. `open` is called once in the engine's process, with the address of the chat route; it tells Paddock of the
    engine and answers the run's groups. `n` samples of a prompt are a group. With several engines each has a process, and so a Paddock, of its own.
    """
    if null not in get_args(Null) or several not in get_args(Several):
        raise Refused("choice", f"null is one of {get_args(Null)}, and several one of {get_args(Several)}.")
    base = import_module("openrlhf.utils.agent").AgentExecutorBase

    class PaddockExecutor(base):  # type: ignore[misc]
        """OpenRLHF's executor whose rollouts are done through Paddock."""

        def __init__(self) -> None:
            self._chat: Chat | None = None
            self._samples = Samples(self._open, n)

        async def execute(
            self, prompt: Any, label: Any, sampling_params: Any, max_length: int, hf_tokenizer: Any, llm_engine: Any, images: Any = None
        ) -> dict[str, Any]:
            if images:
                raise Refused("images", "the chat route takes text. Fix: prompts without images.")
            for name, neutral in (("top_p", (1.0,)), ("top_k", (-1, 0))):
                if (value := getattr(sampling_params, name)) not in neutral:
                    raise Refused("sampling", f"{name} is {value} in the trainer, and rollouts are sampled by the run. Fix: leave it out.")
            self._chat = self._chat or Chat(asyncio.get_running_loop(), llm_engine, hf_tokenizer, sampling_params, max_length)
            found, place, _ = await self._samples.one(prompt, prompt, null=null, several=several, temperature=sampling_params.temperature)
            about = {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None}
            return {**about, **_response(found[place], hf_tokenizer.pad_token_id or 0)}

        def close(self) -> None:
            """Ends its threads and the chat route. OpenRLHF ends the whole process."""
            self._samples.close()
            if self._chat is not None:
                self._chat.close()

        def _open(self) -> Groups:
            assert self._chat is not None
            return open(self._chat.url)

    return PaddockExecutor


def _response(place: Place, pad: int) -> dict[str, Any]:
    if place.rows:
        return response_of(place.rows[0], place.number, place.masked, place.lost)
    # A rollout that never called the model: two tokens of padding that nothing trains.
    logs = {"lost_tokens": 0, "masked": int(place.masked)}
    nothing = {"observation_tokens": [pad, pad], "action_ranges": [], "rollout_log_probs": [0.0, 0.0]}
    return {**nothing, "reward": place.number, "scores": place.number, "truncated": False, "extra_logs": logs}
