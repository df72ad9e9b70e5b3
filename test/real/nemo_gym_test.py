"""`paddock_rl.nemo_gym` on a real `paddock serve`: NeMo Gym's own collection of rollouts posts rows to the agent server, by way of its own environment server; the agent's is a
process that NeMo Gym's `run_webserver` serves. NeMo RL, which is in no package index, is not run: what it does with a response is written here again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import unittest
import urllib.request
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]

import uvicorn  # noqa: E402
from served import EACH, Served  # noqa: E402

NUMBERS = {0: 1.0, 1: 0.75, 3: 0.25}
MEAN = statistics.fmean(NUMBERS.values())
RUN = "gym"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def contiguous(output: list[dict[str, Any]]) -> tuple[list[int], list[int], list[float]]:
    """Ids, mask and logprobs, put together as NeMo RL does at 7ea279abf, nemo_rl/environments/nemo_gym.py 826-960."""
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []
    for item in output:
        prompt, sampled = item["prompt_token_ids"], item["generation_token_ids"]
        assert sampled and ids == prompt[: len(ids)], "Non-contiguous messages found!"
        context = prompt[len(ids) :]
        ids += context + sampled
        mask += [0] * len(context) + [1] * len(sampled)
        logprobs += [0.0] * len(context) + item["generation_log_probs"]
    return ids, mask, logprobs


class NemoGym(Served):
    with_engine = False

    def begin(self, ports: dict[str, int]) -> None:
        """Starts the agent server as NeMo Gym does: its program, with the configuration in variables."""
        agent = {"entrypoint": "app.py", "host": "127.0.0.1", "port": ports["agent"]}
        relay = {"entrypoint": "app.py", "host": "127.0.0.1", "port": ports["environment"], "agent_server": {"type": "responses_api_agents", "name": "agent"}}
        config = {
            "agent": {"responses_api_agents": {"paddock": agent}},
            "environment": {"environment_servers": {"legacy_agent": relay}},
            "head_server": {"host": "127.0.0.1", "port": 9},
            "policy_base_url": self.engine.url,
            "dry_run": False,
        }
        os.environ.update(NEMO_GYM_CONFIG_DICT=json.dumps(config), RUN=RUN)
        env = {**os.environ, "NEMO_GYM_CONFIG_PATH": "agent", "PYTHONWARNINGS": "ignore"}
        child = subprocess.Popen([sys.executable, "-B", str(ROOT / "test/real/nemo_gym_agent.py")], env=env, stdout=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{ports['agent']}/health", timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        self.fail("the agent server does not answer")

    @contextlib.asynccontextmanager
    async def relay(self, port: int) -> AsyncIterator[None]:
        """NeMo Gym's own environment server for agents, in this process."""
        from environment_servers.legacy_agent.app import LegacyAgentEnvironmentServer
        from nemo_gym.server_utils import ServerClient

        os.environ["NEMO_GYM_CONFIG_PATH"] = "environment"
        settings = LegacyAgentEnvironmentServer.load_config_from_global_config()
        server = LegacyAgentEnvironmentServer(config=settings, server_client=ServerClient.load_from_global_config())
        serving = uvicorn.Server(uvicorn.Config(server.setup_webserver(), host="127.0.0.1", port=port, log_level="error"))
        task = asyncio.create_task(serving.serve())
        while not serving.started:
            await asyncio.sleep(0.01)
        try:
            yield
        finally:
            serving.should_exit = True
            await task

    async def collected(self, task: int, **more: Any) -> list[dict[str, Any]]:
        from nemo_gym.rollout_collection import RolloutCollectionHelper
        from nemo_gym.server_utils import BaseServerConfig

        asked = {"input": [{"role": "user", "content": "w5 w6"}], "temperature": 1.0, **more}
        row = {"responses_create_params": asked, "agent_ref": {"name": "agent"}, "_ng_task_index": task, "label": "w7"}
        rows = [{**row, "_ng_rollout_index": index} for index in range(EACH)]
        given = RolloutCollectionHelper().run_examples(rows, BaseServerConfig(host="127.0.0.1", port=9), route_failures_to_sidecar=True)
        return [(await each)[1] for each in given]

    def test_its_responses_are_what_was_recorded_and_what_has_no_number_has_no_reward_of_its_own(self) -> None:
        ports = {"agent": free_port(), "environment": free_port()}
        self.begin(ports)

        async def all_of_it() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
            async with self.relay(ports["environment"]):
                return await self.collected(3), await self.collected(4, top_p=0.9)

        found, refused = asyncio.run(all_of_it())
        self.same_as_recorded(found)
        counts = self.paddock.open_run(RUN).state()["counts"]
        self.assertEqual((counts["claimed"], counts["done"]), (0, 1))
        for result in refused:
            # NeMo Gym's word for a rollout without a reward.
            self.assertEqual(result["_ng_failure_class"], "agent_run_error")
            self.assertNotIn("reward", result)
            self.assertIn("Refused", result["_ng_failure_response_body"])

    def same_as_recorded(self, found: list[dict[str, Any]]) -> None:
        from nemo_gym.base_resources_server import BaseVerifyResponse

        for result in found:
            # Its own class takes it, token ids and all.
            kinds = {type(item).__name__ for item in BaseVerifyResponse.model_validate(result).response.output}
            self.assertEqual(kinds, {"NeMoGymResponseOutputMessageForTraining"})
            self.assertEqual((result["label"], result["_ng_task_index"]), ("w7", 3))
            self.assertEqual(result["instance_config"], {"mask_sample": result["mask_sample"]})
        self.assertAlmostEqual(statistics.fmean(result["reward"] for result in found), MEAN)
        masked = [result for result in found if result["mask_sample"]]
        self.assertEqual([result["reward"] for result in masked], [MEAN, MEAN])
        trained = sorted((result for result in found if not result["mask_sample"]), key=lambda result: -float(result["reward"]))
        self.assertEqual([result["reward"] for result in trained], sorted(NUMBERS.values(), reverse=True))
        for result in trained:
            ids, mask, logprobs = contiguous(result["response"]["output"])
            if result["reward"] == NUMBERS[1]:
                # Of two rows; the one that trains more is given, and the rest is counted.
                self.assertGreater(result["paddock"]["lost_tokens"], 0)
                continue
            own = self.spoken(result["paddock"]["rollout_id"])
            self.assertEqual((ids, mask), own[:2])
            for one, other in zip(logprobs, own[2], strict=True):
                self.assertAlmostEqual(one, other, 5)
        # One group to NeMo RL: it goes by the first prompt's tokens, the group's that never called the model included.
        first = {tuple(result["response"]["output"][0]["prompt_token_ids"]) for result in found if result["reward"] != NUMBERS[1]}
        self.assertEqual(len(first), 1)


if __name__ == "__main__":
    unittest.main()
