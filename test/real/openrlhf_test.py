"""`paddock_rl.openrlhf` on a real `paddock serve`: OpenRLHF's own code loads the executor, asks for the samples of a prompt, makes experiences of them and
computes advantages. Its engine is a small Llama in this process behind `generate`, as its Ray actor has it; kernels for GPUs and Deepspeed, which it
imports, are stand-ins that nothing here calls. Its trainer needs GPUs and is not run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import statistics
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("clients/python/src", "clients/python", "test/real")]
warnings.filterwarnings("ignore")


def real_file(name: str) -> ModuleType:
    """A module of OpenRLHF alone, without the package around it, which imports GPU kernels."""
    found = importlib.util.find_spec("openrlhf")
    assert found is not None and found.submodule_search_locations is not None
    place = Path(found.submodule_search_locations[0], *name.split(".")[1:]).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


for absent in ("deepspeed", "openrlhf.models", "openrlhf.utils.deepspeed"):
    sys.modules[absent] = mock.MagicMock()
sys.modules["openrlhf.models.utils"] = real_file("openrlhf.models.utils")
del sys.modules["deepspeed"]

import torch  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.trainer.ray import vllm_engine  # noqa: E402
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor  # noqa: E402
from paddock_rl import Paddock  # noqa: E402
from paddock_rl.groups import Groups, NoNumber, Refused  # noqa: E402
from served import EACH, FATES, Script, Served  # noqa: E402
from tiny_engine import ASSISTANT, EOS, WORDS, TinyEngine, new_tokenizer  # noqa: E402
from vllm import SamplingParams  # noqa: E402

NUMBERS = {0: 1.0, 1: 0.75, 3: 0.25}
FILE = """
import openrlhf_test
from paddock_rl.openrlhf import executor

AgentExecutor = executor(openrlhf_test.opened, {n}, null={null!r}, several={several!r})
"""


class Tokenizer:
    """The tiny engine's, with its template: each message in words between its role and an end."""

    pad_token_id = 0

    def __init__(self) -> None:
        self._ids = new_tokenizer()

    def __len__(self) -> int:
        return len(WORDS)

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> list[int]:
        roles = {"user": "<user>", "assistant": "<assistant>", "tool": "<tool>"}
        text = " ".join(f"{roles[each['role']]} {each['content']} <eos>" for each in messages)
        return [*self._ids(text)["input_ids"], ASSISTANT]

    def __call__(self, text: str, **_: Any) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.tensor([self._ids(text)["input_ids"]])}

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(WORDS[id_] for id_ in ids if id_ != EOS)


class Engine:
    """What a rollout actor of OpenRLHF is to its executor, and what it sampled."""

    def __init__(self, tiny: TinyEngine) -> None:
        self._tiny = tiny
        self.sampled: list[tuple[list[int], list[int], list[float]]] = []
        self.bounds: list[tuple[int, int]] = []
        """Of each call: tokens of its prompt, and how many it may sample."""

    async def generate(self, ids: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        self.bounds.append((len(ids), params.max_tokens))
        with self._tiny._lock:
            token_ids, logprobs = self._tiny.sample(ids, params.temperature)
        self.sampled.append((list(ids), token_ids, logprobs))
        told = [{id_: SimpleNamespace(logprob=value)} for id_, value in zip(token_ids, logprobs, strict=True)]
        end = "stop" if token_ids[-1] == EOS else "length"
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=token_ids, text="", logprobs=told, finish_reason=end)])


OPENED: list[Groups] = []


def opened(engine: str) -> Groups:
    """What a project's file does: the run's engine is the chat route in front of OpenRLHF's."""
    run = Paddock(os.environ["PADDOCK_CONTROL_URL"]).run(purpose="train")
    run.attach()
    run.engines([engine])
    OPENED.append(Groups(run, harness=Script(FATES)))
    return OPENED[-1]


class TwoTurns(AgentInstanceBase):
    def __init__(self) -> None:
        self.turns = 0

    async def reset(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
        return states

    async def step(self, state_dict: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.turns += 1
        return {"rewards": torch.tensor(0.0), "environment_feedback": " w7 w8", "done": self.turns == 2}


class OpenRlhf(Served):
    with_engine = False

    def setUp(self) -> None:
        # The file names this module as it is imported elsewhere.
        sys.modules["openrlhf_test"] = sys.modules[__name__]

    def executor(self, null: str, several: str) -> Any:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "agent.py")
            file.write_text(FILE.format(n=EACH, null=null, several=several))
            return vllm_engine._load_agent_executor(str(file))

    async def asked(self, executor: Any, engine: Engine, **sampling: Any) -> list[Any]:
        """All samples of a prompt, as OpenRLHF's rollout actor asks for them."""
        actor = SimpleNamespace(executor=executor, generate=engine.generate)
        generate = vllm_engine.RolloutRayActor.__ray_metadata__.modified_class.generate_responses
        params = SamplingParams(**{"temperature": 1.0, "max_tokens": None, "logprobs": 1, **sampling})
        found: list[Any] = await generate(actor, "w5 w6", "w7", params, 128, Tokenizer(), EACH)
        return found

    def test_its_experiences_are_what_was_recorded_and_its_baseline_is_of_those_with_a_number(self) -> None:
        engine = Engine(self.engine)
        executor = self.executor("masked_mean", "main_chain")
        responses = asyncio.run(self.asked(executor, engine))
        groups = OPENED.pop()
        self.addCleanup(groups.close)
        made = [SamplesGenerator._process_response_into_experience(None, response, max_len=128) for response in responses]
        mean = statistics.fmean(NUMBERS.values())
        self.assertEqual([round(float(each.rewards[0]), 6) for each in made], [1.0, 0.75, round(mean, 6), 0.25, round(mean, 6)])
        known = {(tuple(ids + token_ids)): logprobs for ids, token_ids, logprobs in engine.sampled}
        for slot, each in enumerate(made):
            mask = each.action_mask[0].tolist()
            self.assertEqual(bool(sum(mask)), slot in NUMBERS)
            if slot in NUMBERS:
                # The last call's prompt and answer are the whole row: nothing was tokenised again.
                ids = tuple(each.sequences[0].tolist())
                self.assertIn(ids, known)
                tail = known[ids]
                for found, own in zip(each.rollout_log_probs[0].tolist()[-len(tail) :], tail, strict=True):
                    self.assertAlmostEqual(found, own, 5)
        for place, each in enumerate(made):
            each.index = [place]
            each.kl = torch.zeros_like(each.action_mask, dtype=torch.float32)
        advantage = SimpleNamespace(estimator="group_norm", gamma=1.0)
        args = SimpleNamespace(
            reward=SimpleNamespace(clip_range=None), rollout=SimpleNamespace(n_samples_per_prompt=EACH), algo=SimpleNamespace(advantage=advantage)
        )
        maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
        maker.strategy, maker.kl_ctl, maker.advantage_estimator = SimpleNamespace(args=args), SimpleNamespace(value=0.0), "group_norm"
        maker.compute_advantages_and_returns(made)
        given = [1.0, 0.75, mean, 0.25, mean]
        for slot, own in NUMBERS.items():
            (worth,) = {round(float(value), 4) for value, bit in zip(made[slot].advantages[0], made[slot].action_mask[0], strict=True) if bit}
            self.assertAlmostEqual(worth, (own - mean) / (statistics.stdev(given) + 1e-9), 3)
        self.assertEqual(Counter(each["extra_logs"]["lost_tokens"] > 0 for each in responses), Counter({False: 4, True: 1}))
        self.assertEqual(groups.run.state()["counts"]["claimed"], 0)
        groups.run.finish()
        # What has no number, or several rows, is refused unless one says what to do.
        for null, several, error in (("raise", "main_chain", NoNumber), ("masked_mean", "refuse", ValueError)):
            with self.assertRaises(error):
                asyncio.run(self.refused(null, several, engine))

    def test_a_call_may_be_as_long_as_what_is_left_as_in_its_own_class_of_several_turns(self) -> None:
        for said in (None, 40):
            own, ours = Engine(self.engine), Engine(self.engine)
            params = SamplingParams(temperature=1.0, max_tokens=said, logprobs=1)
            asyncio.run(MultiTurnAgentExecutor(TwoTurns).execute("w5 w6", "w7", params, 128, Tokenizer(), own))
            asyncio.run(self.asked(self.executor("masked_mean", "main_chain"), ours, max_tokens=said))
            groups = OPENED.pop()
            groups.run.finish()
            groups.close()
            for engine in (own, ours):
                self.assertGreaterEqual(len(engine.bounds), 2)
                # What says its own bound keeps it: Paddock asks for eight tokens when it looks what the engine is.
                self.assertEqual({prompt + most for prompt, most in engine.bounds if most != 8}, {128})
            self.assertEqual([8 in (most for _, most in engine.bounds) for engine in (own, ours)], [False, True])

    async def refused(self, null: str, several: str, engine: Engine) -> None:
        try:
            await self.asked(self.executor(null, several), engine)
        finally:
            groups = OPENED.pop()
            groups.run.finish()
            groups.close()

    def test_sampling_that_rollouts_would_not_do_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "sampling"):
            asyncio.run(self.asked(self.executor("raise", "refuse"), Engine(self.engine), top_p=0.9))
        self.assertEqual(OPENED, [])


if __name__ == "__main__":
    unittest.main()
