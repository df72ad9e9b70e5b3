"""NeMo Gym and NeMo RL train on rollouts of your harness: an agent server, whose `POST /run` is one rollout.

    # responses_api_agents/paddock/app.py
    def groups(config: Mapping[str, Any]) -> Groups:
        run = Paddock(url).run(purpose="train")        # of a Paddock that was started with --engine none
        run.attach()
        run.engines([config["policy_base_url"]])
        return Groups(run, harness=solve, spare=2)

    PaddockAgent = agent(groups, n=8)                  # n is grpo.num_generations_per_prompt, or num_repeats
    if __name__ == "__main__":
        PaddockAgent.run_webserver()

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| `_ng_task_index`, else equal rows, asked for at once | NeMo RL, from `reward` | a mask of the sample leaves its reward in the mean: refused, or masked with the mean of the others | refused, or the main chain |

Written against nemo-gym 0.7.0 and NeMo-RL at 7ea279abf. There

- `nemo_gym/base_responses_api_agent.py` 215-265: `run` takes a row and answers a verify response; `nemo_gym/rollout_collection.py` 3390-3460 posts rows to it, all at once;
- `nemo_gym/openai_utils.py` 160-200: an item of the response with `prompt_token_ids`, `generation_token_ids` and `generation_log_probs` is one that trains, whole;
- `nemo_rl/environments/nemo_gym.py` 826-960 puts items together and raises unless each prompt begins with all that was before; a response without such an item is an error;
- `nemo_rl/experience/rollouts.py` 266 reads `instance_config.mask_sample`, which `algorithms/grpo.py` 2155 keeps from the loss and leaves in the baseline; prompts are one group where their first tokens are equal.

NeMo Gym says nothing of steps and weights: rows are `used` once they are handed over, at step 0, and the weights are those that a hook of yours announces. test/real/nemo_gym_test.py
puts it through NeMo Gym's collection. Nothing of NeMo Gym is imported before `agent`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from importlib import import_module
from typing import Any, get_args

from .convert._rows import Null, Several, numbers, trained_runs
from .groups import Groups, MultiRow, NoNumber, OpenRollout, Place, Refused
from .rows import Group, Row
from .samples import Samples

__all__ = ["Groups", "MultiRow", "NoNumber", "Null", "OpenRollout", "Refused", "Several", "agent"]

_CUT = {"budget", "context_overflow", "horizon"}


def prompt_of(row: Mapping[str, Any]) -> Any:
    """What is asked in a row: a text, or messages; `instructions` are a message of the system."""
    asked = row["responses_create_params"]
    given = asked["input"]
    if asked.get("instructions") is None:
        return given
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return [{"role": "system", "content": asked["instructions"]}, *messages]


def agent(
    open: Callable[[Mapping[str, Any]], Groups],
    n: int,
    *,
    null: Null = "raise",
    several: Several = "refuse",
    prompt: Callable[[Mapping[str, Any]], Any] = prompt_of,
) -> Any:
    """The class of an agent server. `open` is called once, with NeMo Gym's configuration, and answers the run's groups. `n` rows of a task are a group, and all of them have to be
    asked for at once. `prompt` makes what the harness gets of a row.
    """
    if null not in get_args(Null) or several not in get_args(Several):
        raise Refused("choice", f"null is one of {get_args(Null)}, and several one of {get_args(Several)}.")
    agents = import_module("nemo_gym.base_responses_api_agent")
    servers = import_module("nemo_gym.base_resources_server")
    pydantic = import_module("pydantic")

    class RunRequest(servers.BaseRunRequest):  # type: ignore[misc, name-defined]
        """A row, with whatever else stands in it."""

        model_config = pydantic.ConfigDict(extra="allow")

    class VerifyResponse(servers.BaseVerifyResponse):  # type: ignore[misc, name-defined]
        """The row, its response and its reward."""

        model_config = pydantic.ConfigDict(extra="allow")

    class PaddockAgent(agents.SimpleResponsesAPIAgent):  # type: ignore[misc, name-defined]
        """NeMo Gym's agent server whose rollouts are done through Paddock."""

        ray_enabled = False
        _samples = pydantic.PrivateAttr(default=None)

        def model_post_init(self, context: Any, /) -> None:
            super().model_post_init(context)
            self._samples = Samples(lambda: open(self.server_client.global_config_dict), n)

        async def run(self, body: Any) -> Any:
            row = body.model_dump(mode="json", exclude_unset=True)
            asked = row["responses_create_params"]
            if asked.get("top_p") not in (None, 1.0):
                raise Refused("sampling", f"top_p is {asked['top_p']} in the row, and rollouts are sampled by the run. Fix: leave it out.")
            found, place, group = await self._samples.one(
                _name(row),
                prompt(row),
                null=null,
                several=several,
                temperature=asked.get("temperature"),
                longest=asked.get("max_output_tokens"),
            )
            return VerifyResponse.model_validate({**row, **_verified(found, place, group)})

        # Read when routes are made, where names of this function are not known.
        run.__annotations__ = {"body": RunRequest, "return": VerifyResponse}

        async def responses(self, body: dict[str, Any]) -> Any:
            """No part of a rollout can be asked for."""
            raise Refused("responses", "only whole rollouts can be asked for. Fix: POST /run.")

        responses.__annotations__ = {"body": dict}

        def close(self) -> None:
            """Ends its threads. NeMo Gym ends the whole process."""
            self._samples.close()

    return PaddockAgent


def _name(row: Mapping[str, Any]) -> Hashable:
    """By what rows are known as those of one group."""
    index = row.get("_ng_task_index")
    if index is not None:
        return int(index)
    return json.dumps({name: value for name, value in row.items() if not name.startswith("_")}, sort_keys=True)


def _verified(found: list[Place], place: int, group: Group | None) -> dict[str, Any]:
    """What is said of one place of a group, beside its row."""
    own = found[place]
    row = own.rows[0] if own.rows else None
    items = [] if row is None else _items(row, own.masked)
    trains = bool(items) and not own.masked
    if not items:
        items = [_item(0, _first_prompt(found), [0], [0.0])]
    cut = row is not None and row.end in _CUT
    response = {
        "id": f"resp_{place}" if row is None else f"resp_{row.rollout_id}",
        "object": "response",
        "created_at": 0,
        "model": "paddock",
        "output": items,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    about = {"run_id": None if group is None else group.run_id, "rollout_id": None if row is None else row.rollout_id, "lost_tokens": own.lost}
    said = {"response": response, "reward": own.number, "mask_sample": own.masked, "instance_config": {"mask_sample": not trains}, "paddock": about}
    if own.masked:
        said |= {"failure_kind": "paddock:no_number", "failure_reason": "the rollout has no number; the reward is the mean of its group's others"}
    return said


def _items(row: Row, masked: bool) -> list[dict[str, Any]]:
    """An item for each run of tokens that train: what lies between is in the prompt of the next."""
    ids, logprobs = list(row.token_ids), numbers(row, masked=masked)
    return [_item(start, ids[:start], ids[start:end], logprobs[start:end]) for start, end in trained_runs(row)]


def _item(at: int, prompt: list[int], sampled: list[int], logprobs: list[float]) -> dict[str, Any]:
    message = {"type": "message", "id": f"msg_{at}", "role": "assistant", "status": "completed", "content": []}
    return {**message, "prompt_token_ids": prompt, "generation_token_ids": sampled, "generation_log_probs": logprobs}


def _first_prompt(found: list[Place]) -> list[int]:
    """The prompt of the group's others, which makes it one of them to NeMo RL."""
    for place in found:
        for row in place.rows:
            return list(row.token_ids)[: row.prompt_len]
    return [0]
