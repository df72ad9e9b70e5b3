"""`paddock_rl.agentlightning` on a real `paddock serve`: Agent Lightning's own rollout manager asks for rollouts, its adapter makes verl's batch of them at both of its levels, and its function computes
advantages with verl's. Its trainer needs GPUs and is not run.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from agentlightning.verl.agl_rollout_manager import AglRolloutManager  # noqa: E402
from agentlightning.verl.rollout_adapter import RolloutAdapter  # noqa: E402
from agentlightning.verl.rollout_level_advantage import compute_rollout_level_advantage  # noqa: E402
from paddock_rl.agentlightning import Server  # noqa: E402
from served import EACH, Script, Served, grpo  # noqa: E402

NUMBERS = [1.0, 0.75, 0.25]


class AgentLightning(Served):
    with_engine = False

    def manager(self, server: Server, step: int) -> AglRolloutManager:
        return AglRolloutManager(agl_base_url=server.url, agl_key="", model="m", step=step, train_rollout_n=EACH, poll_interval_seconds=0.2)

    def completed(self, server: Server, step: int, *prompts: str) -> list[Any]:
        """What a step of its trainer does before it trains."""
        manager = self.manager(server, step)
        manager.delete_model()
        # An address as verl has it; its scheme and /v1 are the manager's.
        manager.register_model([self.engine.url.removeprefix("http://")])
        found: list[Any] = manager.enqueue_and_wait_until_completed({"prompt": numpy.array(prompts, dtype=object)}, is_train=True)
        manager.client.close()
        return found

    def batch(self, completed: list[Any], level: str) -> Any:
        adapter = RolloutAdapter(
            max_prompt_length=64, max_response_length=64, device=torch.device("cpu"), pad_token_id=0, trace_aggregator_level=level
        )
        return adapter.get_train_data_batch(completed)

    def test_its_batches_are_exactly_what_was_recorded_and_its_baseline_is_of_those_with_a_number(self) -> None:
        script = Script()
        with Server(self.groups(script), EACH, prompt=lambda asked: asked["prompt"]) as server, contextlib.redirect_stdout(io.StringIO()):
            completed = self.completed(server, 1, "w5 w6", "w9 w8 w7")
            self.assertEqual(self.outcomes(server.groups), Counter(claimed=2))
            self.same_batches(script, completed)
            again = self.completed(server, 2, "w5 w5")
            self.assertEqual(self.outcomes(server.groups), Counter(done=2, claimed=1))
            self.assertEqual({triplet.metadata["server"]["version"] for one in again for triplet in one.triplets}, {1})
            server.steps.done()
            self.assertEqual(self.outcomes(server.groups), Counter(done=3))

    def same_batches(self, script: Script, completed: list[Any]) -> None:
        fates = Counter((str(one.rollout_state), one.final_reward, len(one.triplets) > 0) for one in completed)
        numbers = {("succeeded", number, True): 2 for number in NUMBERS}
        self.assertEqual(fates, Counter({**numbers, ("failed", None, False): 4}))
        engine = {(tuple(call.prompt_ids), tuple(call.token_ids)): call.logprobs for call in self.engine.calls}
        for level in ("transition", "trajectory"):
            data, _ = self.batch(completed, level)
            if level == "transition":
                # As its trainer does: a response is an answer, whole.
                data.batch["response_mask"] = data.batch["attention_mask"][:, data.batch["prompts"].shape[1] :]
            rows = {name: data.batch[name] for name in ("prompts", "responses", "response_mask", "rollout_log_probs")}
            trained = 0
            for at in range(len(data)):
                mask = rows["response_mask"][at].bool()
                trained += int(mask.sum())
                if level == "transition":
                    there = data.batch["attention_mask"][at].bool()
                    prompt = rows["prompts"][at][there[: rows["prompts"].shape[1]]]
                    own = engine[(tuple(prompt.tolist()), tuple(rows["responses"][at][mask].tolist()))]
                    self.assertTrue(torch.allclose(rows["rollout_log_probs"][at][mask], torch.tensor(own)))
            judged = [call for call in self.engine.calls if call.user.split("/")[0] in script.rewards]
            self.assertEqual(trained, sum(len(call.token_ids) for call in judged))
            self.same_advantages(data, completed)

    def same_advantages(self, data: Any, completed: list[Any]) -> None:
        rewards = {one.rollout_id: one.final_reward for one in completed}
        data.batch["token_level_rewards"] = data.batch["token_level_scores"]
        found, _ = compute_rollout_level_advantage(data, adv_estimator="grpo", gamma=1.0, lam=1.0, num_repeat=EACH)
        mean = statistics.fmean(NUMBERS)
        for at, name in enumerate(found.non_tensor_batch["rollout_id_list"]):
            (worth,) = {round(float(value), 4) for value in found.batch["advantages"][at][found.batch["response_mask"][at].bool()]}
            # Its adapter keeps rewards in bfloat16.
            self.assertAlmostEqual(worth, grpo(NUMBERS, rewards[name]), delta=0.01)
            self.assertEqual(worth > 0, rewards[name] > mean)

    def test_validation_is_refused(self) -> None:
        with Server(self.groups(Script()), EACH) as server, contextlib.redirect_stdout(io.StringIO()):
            manager = self.manager(server, 1)
            manager.client.max_retries = 0
            with self.assertRaisesRegex(Exception, "422"):
                manager.enqueue_and_wait_until_completed({"prompt": numpy.array(["w5"], dtype=object)}, is_train=False)
            manager.client.close()


if __name__ == "__main__":
    unittest.main()
