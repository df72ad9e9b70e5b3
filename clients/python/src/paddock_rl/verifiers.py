"""prime-rl and verifiers train on rollouts of your harness: a verifiers environment, which prime-rl's environment server serves.

    # my_env/__init__.py, named in the environment's `id`
    from paddock_rl.verifiers import Groups, environment
    from .tasks import Tasks

    Rollouts = environment(lambda: Groups(Paddock(url).run("prime", purpose="train"), harness=solve, spare=2, lease_s=86_400))
    __all__ = ["Rollouts", "Tasks"]

| who groups | who computes advantages | how null is said | how several rows are said |
|---|---|---|---|
| the orchestrator: an episode per rollout | prime-rl, from `rewards` | a reward of None in a trace that is not `ok`, so it is in no mean | a branch each, in one trace |

Written against verifiers 0.4.0 and its classes. There

- `v1/serve/server.py` 95-122: a request is one rollout of one task; the client owns tasks and groups, and cancels what it no longer wants;
- `v1/env.py` 223-282, `Env.run_episode`: a task goes in, an `Episode` comes out. It is overridden here, so no agent, box or interception of verifiers' own is started;
- `v1/trace.py`: a reward of None is 0 in `Trace.reward`, so a trace without a number is not `ok` and has an error; prime-rl leaves traces with errors out.

And prime-rl at 559b44772: `orchestrator/envs.py` 85-110 asks, `algo/base.py` 35-42 takes clean traces with sampled tokens, `algo/grpo.py` 27-35 takes their mean for a baseline, and
`trajectories.py` 68-165 makes a sample of each branch. By hand all of those took what test/real/verifiers_test.py records.

A request says nothing of groups, steps or weights. Each rollout is a group of one to Paddock, the weights are those that the engine or a hook of yours names, and what
became of rows is said by `dispositions`, from the side that knows it. Until then each rollout is claimed, so that nobody else trains it.

test/real/verifiers_test.py puts it through verifiers' server and client. Nothing of verifiers is imported before `environment`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

from .client import Outcome, Run
from .convert._rows import rows_of
from .convert.verifiers import trace_of
from .groups import Asked, Groups, OpenRollout, Refused, check_temperature, chosen
from .rows import Group

__all__ = ["Groups", "OpenRollout", "Refused", "dispositions", "environment"]

_NEUTRAL = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0}


def prompt_of(data: Any) -> Any:
    """A task's prompt: its text, or its messages; with its system prompt as the first of them."""
    if data.prompt is None:
        raise Refused("no_prompt", "the task begins without a prompt. Fix: give prompt, which makes one of the task's data.")
    if isinstance(data.prompt, str) and data.system_prompt is None:
        return data.prompt
    given = [{"role": "user", "content": data.prompt}] if isinstance(data.prompt, str) else [each.model_dump(exclude_none=True) for each in data.prompt]
    return given if data.system_prompt is None else [{"role": "system", "content": data.system_prompt}, *given]


def environment(open: Callable[[], Groups], *, prompt: Callable[[Any], Any] = prompt_of, at_once: int = 256) -> Any:
    """The class of an environment, to be exported beside a taskset. `open` is called once it is served, in its own process, and attaches to the run. `prompt`
    makes what the harness gets of a task's data. `at_once` rollouts go on side by side; `Groups` has a bound of its own.
    """
    vf = import_module("verifiers.v1")
    single = import_module("verifiers.v1.envs.single_agent.env")
    agents = import_module("verifiers.v1.configs.agent")
    traces = import_module("verifiers.v1.trace")
    episodes = import_module("verifiers.v1.episode")

    class PaddockEnv(single.SingleAgentEnv):  # type: ignore[misc, name-defined]
        """verifiers' environment whose rollouts are done through Paddock."""

        _paddock: _Rollouts | None = None

        @contextlib.asynccontextmanager
        async def serving(self) -> AsyncIterator[None]:
            loop = asyncio.get_running_loop()
            self._paddock = await loop.run_in_executor(None, _Rollouts, open, at_once)
            try:
                yield
            finally:
                found, self._paddock = self._paddock, None
                await loop.run_in_executor(None, found.close)

        async def run_episode(self, task: Any, ctx: Any, *, on_trace: Any = None, on_discard: Any = None) -> Any:
            if self._paddock is None:
                raise RuntimeError("this environment is not served. Fix: run episodes within serving().")
            about = traces.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
            episode = episodes.Episode(env=episodes.EnvInfo(id=self.config.env_id), task=about)
            try:
                fields = await self._paddock.one(prompt(task.data), ctx.sampling)
            except Exception as error:
                episode.errors.append(traces.Error(type=type(error).__name__, message=str(error)))
                return episode
            config = agents.resolve_agent(self.config.agent, model=ctx.model, client=ctx.client, sampling=ctx.sampling)
            trace = vf.Trace(task=about, agent=traces.AgentInfo(config=config), **fields)
            episode.traces.append(trace)
            if on_trace is not None:
                on_trace(trace)
            episode.ok = trace.ok
            return episode

    return PaddockEnv


def dispositions(traces: Iterable[Any], step: int, outcome: Outcome = "used") -> list[dict[str, Any]]:
    """What `Run.dispose` takes to say of these traces' rows what became of them at `step`, in any process that has the traces:

        run = paddock.open_run(info["run_id"]); run.join(info["incarnation"]); run.dispose(dispositions(traces, step))

    with `info = trace.info["paddock"]`. Traces of several runs are said to each. The reward is said too, and no advantage: that is prime-rl's.
    """
    said = []
    for trace in traces:
        # Of a trace that is not ok it has been said already: nobody trains it.
        if trace.ok:
            rows = trace.info["paddock"]["rows"]
            claim = trace.info["paddock"]["claim_id"]
            said += [{"row": row, "claim_id": claim, "step": step, "outcome": outcome, "reward_used": trace.reward} for row in rows]
    return said


class _Rollouts:
    """The rollouts of a served environment: each is a group of one."""

    def __init__(self, open: Callable[[], Groups], at_once: int) -> None:
        self._groups = open()
        self._run: Run = self._groups.run
        self._run.attach()
        self._threads = ThreadPoolExecutor(at_once, "paddock-episode")

    async def one(self, prompt: Any, sampling: Any) -> dict[str, Any]:
        """The fields of a trace. A rollout that is cancelled here goes on to its end, and nobody trains it."""
        loop = asyncio.get_running_loop()
        asked = self._threads.submit(self._settled, prompt)
        try:
            group = await asyncio.shield(asyncio.wrap_future(asked))
        except asyncio.CancelledError:
            # Called where it is done already, so not on the loop.
            loop.run_in_executor(None, asked.add_done_callback, self._unwanted)
            raise
        return await loop.run_in_executor(self._threads, self._fields, group, sampling)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._groups.close()
        self._run.close()

    def _settled(self, prompt: Any) -> Group:
        (group,) = self._groups.settled([Asked(prompt, 1)], 0)
        if group is None:
            raise Refused("no_rollout", "the rollout and its further attempts came to nothing. Fix: more spare.")
        return group

    def _fields(self, group: Group, sampling: Any) -> dict[str, Any]:
        (member,) = chosen(group, 1)
        try:
            for name, neutral in _NEUTRAL.items():
                if (value := getattr(sampling, name, None)) not in (None, neutral):
                    raise Refused("sampling", f"{name} is {value} in the orchestrator, and harnesses sample by the run. Fix: say it in the run's sampling.")
            for row in rows_of(group, member):
                check_temperature(row, sampling.temperature)
        except Refused as error:
            self._run.dispose_group(group, 0, "skipped", reason=str(error))
            raise
        fields = trace_of(group, member)
        about = fields["info"]["paddock"]
        about["incarnation"] = self._run.incarnation
        given = about["rows"] if fields["ok"] else []
        reason = "its rollout is not what the orchestrator got, or has no number"
        rest = [{"row": row.row_id, "step": 0, "outcome": "skipped", "reason": row.unusable_reason or reason} for row in group.rows if row.row_id not in given]
        if rest:
            self._run.dispose(rest)
        return fields

    def _unwanted(self, asked: Future[Group]) -> None:
        if not asked.cancelled() and asked.exception() is None:
            self._run.dispose_group(asked.result(), 0, "stale", reason="the orchestrator cancelled it")
