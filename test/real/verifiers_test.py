"""`paddock_rl.verifiers` on a real `paddock serve`, with tiny_engine.py: through the environment server and client of verifiers, as prime-rl's orchestrator
asks. Truth is what the engine noted of each call and what the harness answered. prime-rl itself is in no package index and wants GPUs.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import types
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]

import verifiers.v1 as vf  # noqa: E402
from paddock_rl.groups import Groups, OpenRollout  # noqa: E402
from paddock_rl.verifiers import dispositions, environment  # noqa: E402
from served import EACH, FATES, Script, Served  # noqa: E402
from verifiers.v1.configs.client import EvalClientConfig  # noqa: E402
from verifiers.v1.utils.loaders import resolve_env_config  # noqa: E402
from verifiers.v1.episode import WireEpisode  # noqa: E402
from verifiers.v1.serve import EnvClient, EnvServer  # noqa: E402


class Words(vf.TaskData):
    word: str = ""


class WordTask(vf.Task[Words]):
    pass


class WordTasks(vf.Taskset[WordTask]):
    def load(self) -> Iterable[WordTask]:
        yield WordTask(Words(prompt="w5 w6", word="w7"), self.config.task)


def advantages(episodes: list[Any]) -> dict[str, float]:
    """By rollout, as prime-rl's GRPO gives them at 559b44772: orchestrator/envs.py 103-110, algo/base.py 35-42, algo/grpo.py 27-35."""
    clean = [trace for each in episodes if each.ok for trace in each.traces if not trace.has_error and trace.agent.trainable]
    traces = [trace for trace in clean if any(any(node.mask) for node in trace.nodes)]
    mean = statistics.fmean(trace.reward for trace in traces)
    return {trace.info["paddock"]["rollout_id"]: trace.reward - mean for trace in traces}


class Verifiers(Served):
    def served(self, groups: Groups) -> Any:
        """A server of the environment, as `serve_env` makes one from its id."""
        kind = environment(lambda: groups)
        plugin = types.ModuleType("words_of_paddock")
        plugin.Rollouts, plugin.WordTasks, plugin.__all__ = kind, WordTasks, ["Rollouts", "WordTasks"]  # type: ignore[attr-defined]
        plugin.__spec__ = types.SimpleNamespace(name="words_of_paddock")  # type: ignore[assignment]
        sys.modules["words_of_paddock"] = plugin
        return EnvServer(resolve_env_config({"taskset": {"id": "words_of_paddock"}}), address="tcp://127.0.0.1:0")

    async def episodes(self, server: Any, n: int, sampling: dict[str, Any], cancelled: asyncio.Event | None = None) -> list[Any]:
        """`n` rollouts of one task, each a request, as the orchestrator asks; with `cancelled` they are given up once it is set."""
        serving = asyncio.create_task(server.run())
        client = EnvClient(server.address)
        await client.wait_for_server_startup(timeout=60)
        (task,) = WordTasks(server.env.config.taskset)
        try:
            asked = [
                asyncio.create_task(client.run(EvalClientConfig(base_url="http://nobody"), "any", vf.SamplingConfig(**sampling), task.data.model_dump()))
                for _ in range(n)
            ]
            if cancelled is not None:
                await cancelled.wait()
                for one in asked:
                    one.cancel()
            found = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await client.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        return found

    def script(self) -> Script:
        """Fates by the order in which rollouts begin: to Paddock each is a group of its own."""
        places: dict[str, int] = {}
        lock = threading.Lock()

        def place(opened: OpenRollout) -> int:
            with lock:
                return places.setdefault(opened.rollout_id, len(places))

        return Script(FATES, place)

    def test_the_orchestrator_gets_exactly_what_was_recorded_and_its_baseline_is_of_those_with_a_number(self) -> None:
        script = self.script()
        groups = self.groups(script)
        run = groups.run
        episodes = asyncio.run(self.episodes(self.served(groups), EACH, {"temperature": 1.0}))
        self.assertEqual([type(each) for each in episodes], [WireEpisode] * EACH)
        # An episode whose rollout came to nothing has no trace; a null has one that is not ok, so neither is a 0.
        self.assertEqual(sorted(len(each.traces) for each in episodes), [0, 0, 1, 1, 1])
        scored = [each.traces[0] for each in episodes if each.ok]
        self.assertEqual(sorted(trace.reward for trace in scored), [0.25, 0.75, 1.0])
        for each in episodes:
            if not each.ok:
                self.assertTrue(each.errors or each.traces[0].errors)
        self.assertEqual(advantages(episodes), {rollout: number - statistics.fmean([1.0, 0.75, 0.25]) for rollout, number in script.rewards.items()})
        trained = 0
        for trace in scored:
            rollout = trace.info["paddock"]["rollout_id"]
            self.assertEqual(trace.reward, script.rewards[rollout])
            self.assertEqual(trace.is_truncated, trace.reward == 0.25)
            self.assertEqual((trace.num_turns, len(trace.branches)), (2, 2 if trace.reward == 0.75 else 1))
            trained += sum(sum(branch.sampled_mask) for branch in trace.branches)
            if trace.reward == 0.75:
                continue
            (branch,) = trace.branches
            ids, mask, logprobs = self.spoken(rollout)
            self.assertEqual(branch.token_ids, ids)
            self.assertEqual([int(bit) for bit in branch.sampled_mask], mask)
            for found, own in zip(branch.logprobs, logprobs, strict=True):
                self.assertAlmostEqual(found, own, 5)
        sampled = sum(len(call.token_ids) for call in self.engine.calls if call.user.split("/")[0] in script.rewards)
        self.assertEqual(trained, sampled)
        # What became of rows is said by the side that knows it, in another process of the same incarnation.
        about = scored[0].info["paddock"]
        other = self.paddock.open_run(about["run_id"])
        other.join(about["incarnation"])
        said = dispositions([trace for each in episodes for trace in each.traces], 3)
        self.assertEqual(sorted(each["reward_used"] for each in said), [0.25, 0.75, 0.75, 1.0])
        self.assertEqual(other.dispose(said).accepted, 4)
        # Four settled with a usable or unusable member; of the infra group nothing was ever handed out.
        self.assertEqual(run.state()["counts"]["claimed"], 0)

    def test_what_the_orchestrator_cancels_is_trained_by_nobody(self) -> None:
        begun, go = asyncio.Event(), threading.Event()
        loops: list[asyncio.AbstractEventLoop] = []
        script = Script(("number",))

        def harness(opened: OpenRollout) -> Any:
            loops[0].call_soon_threadsafe(begun.set)
            go.wait()
            return script(opened)

        groups = self.groups(harness)
        done = threading.Event()
        dispose = groups.run.dispose_group

        def told(*about: Any, **more: Any) -> Any:
            found = dispose(*about, **more)
            done.set()
            return found

        groups.run.dispose_group = told  # type: ignore[method-assign]

        async def cancelled() -> list[Any]:
            loops.append(asyncio.get_running_loop())
            server = self.served(groups)
            watching = asyncio.create_task(begun.wait())
            asked = asyncio.create_task(self.episodes(server, 1, {}, begun))
            await watching
            go.set()
            await asyncio.to_thread(done.wait, 60)
            return await asked

        (found,) = asyncio.run(cancelled())
        self.assertIsInstance(found, asyncio.CancelledError)
        self.assertEqual(groups.run.state()["counts"]["claimed"], 0)

    def test_sampling_that_harnesses_would_not_do_is_an_error_and_no_trace(self) -> None:
        for sampling, code in (({"temperature": 0.5}, "temperature"), ({"top_p": 0.9}, "sampling"), ({"extra_body": {"top_k": 5}}, "sampling"), ({"repetition_penalty": 1.1}, "sampling")):
            groups = self.groups(Script(("number",)))
            (episode,) = asyncio.run(self.episodes(self.served(groups), 1, sampling))
            self.assertEqual((episode.ok, episode.traces, episode.errors[0].type), (False, [], "Refused"))
            self.assertIn(code, episode.errors[0].message)


if __name__ == "__main__":
    unittest.main()
