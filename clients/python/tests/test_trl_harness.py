"""`paddock_rl.trl_harness` without TRL, which test/real has: what the trainer's side says of samples, and what a session does that is closed."""

from __future__ import annotations

import pickle
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest import mock

from paddock_rl import Paddock
from paddock_rl.groups import Groups, Refused
from paddock_rl.trl_harness import Factory, Sessions, _Taken

from . import encoder
from .test_trl import Server


class Worker:
    """What is looked at of TRL's."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.rollout_buffer: Any = SimpleNamespace(get=lambda block, timeout: self.waiting.pop(0))
        self.waiting: list[Any] = []
        self._process = None
        self.versions: list[int] = []

    def update_model_version(self, version: int) -> None:
        self.versions.append(version)

    def start(self) -> None:
        pass


def opened() -> Any:
    raise AssertionError("only the worker's process opens groups")


class TrlHarness(unittest.TestCase):
    def setUp(self) -> None:
        made = SimpleNamespace(TrainingTurn=SimpleNamespace, TrainingTrace=SimpleNamespace)
        fakes = {
            "transformers": SimpleNamespace(TrainerCallback=object),
            "openenv.core.harness.training": made,
            "trl.experimental.async_grpo.openenv_harness": SimpleNamespace(HarnessRolloutWorker=Worker),
        }
        patched = mock.patch.dict(sys.modules, fakes)
        patched.start()
        self.addCleanup(patched.stop)

    def groups(self, *rounds: encoder.Header, **more: Any) -> tuple[Server, Groups]:
        server = Server(*rounds, inside="harness" not in more)
        self.addCleanup(server.close)
        run = Paddock(server.url, "token", patience_s=0).run()
        self.addCleanup(run.close)
        groups = Groups(run, **{"task": lambda prompt: prompt, **more})
        self.addCleanup(groups.close)
        return server, groups

    def bound(self, step: int = 0) -> tuple[Server, Sessions, Any]:
        server, groups = self.groups()
        sessions = Sessions(groups.run, opened, 2)
        worker = sessions.worker(temperature=1.0)
        state = SimpleNamespace(global_step=step)
        transfer = sessions.weights(SimpleNamespace(pause=lambda: None))
        trainer = SimpleNamespace(
            state=state, args=SimpleNamespace(max_staleness=1), model_version=3, rollout_worker=worker, weight_transfer=transfer, callbacks=[]
        )
        trainer.add_callback = trainer.callbacks.append
        sessions.bind(trainer)
        return server, sessions, trainer

    def samples(self, header: encoder.Header) -> list[Any]:
        """What TRL's worker would queue of a group of two."""
        _, groups = self.groups(header)
        groups.run.attach()
        factory = Factory(lambda: groups, "run", 2, 2)({"temperature": 1.0})
        sessions = [factory.create("one", seed=0) for _ in range(2)]
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda session: session.wait_for_completion(), sessions))
        found = []
        for session in sessions:
            turns = session.fetch_training_trace().turns
            held: list[Any] = []
            for turn in turns:
                whole = turn.prompt_token_ids + turn.completion_token_ids
                if held and turn.prompt_token_ids[: len(held[-1])] == held[-1]:
                    held[-1] = whole
                else:
                    held.append(whole)
            completion = [*turns[-1].request["messages"], {"role": "assistant", "content": ""}]
            number = session.verify([]).env_reward
            found += [SimpleNamespace(input_ids=ids, completion=completion, advantage=number - 0.5, metrics={"reward": number}, model_version=3) for ids in held]
        # Which session got which rollout is by chance.
        return sorted(found, key=lambda sample: -sample.advantage)

    def test_each_row_is_known_in_its_sample_and_said_once(self) -> None:
        rows = [
            encoder.row("side", "r0", 1.0, [(2, 1)], rows_of_rollout=2, is_last=False),
            encoder.row("main", "r0", 1.0, [(3, 2), (2, 1)], rows_of_rollout=2),
            encoder.row("other", "r1", 0.0, [(4, 2)]),
        ]
        for place, row in enumerate(rows):
            row["arrays"]["token_ids"] = [100 * place + index for index in range(row["n_tokens"])]
        samples = self.samples(encoder.round_of([encoder.member("r0", 1.0, 0), encoder.member("r1", 0.0, 1)], rows))
        self.assertEqual(len(samples), 3)
        server, sessions, trainer = self.bound(step=4)
        trainer.weight_transfer.pause()
        trainer.rollout_worker.waiting = list(samples)
        for _ in samples[:2]:
            trainer.rollout_worker.rollout_buffer.get(timeout=1)
        trainer.callbacks[0].on_step_end(None, trainer.state, None)
        sessions._left(samples[2:])
        said = [(each["row"], each["outcome"], each["step"], each["reward_used"], each["advantage"]) for each in server.disposed()]
        self.assertEqual(said, [("side", "used", 4, 1.0, 0.5), ("main", "used", 4, 1.0, 0.5), ("other", "skipped", 4, None, None)])

    def test_what_is_dropped_for_its_age_is_stale(self) -> None:
        samples = self.samples(encoder.simple([1.0, 0.5]))
        server, _, trainer = self.bound()
        trainer.weight_transfer.pause()
        trainer.rollout_worker.waiting = list(samples)
        for version in (5, 3):
            trainer.model_version = version
            trainer.rollout_worker.rollout_buffer.get(timeout=1)
        trainer.callbacks[0].on_step_end(None, trainer.state, None)
        self.assertEqual([(each["row"], each["outcome"]) for each in server.disposed()], [("row0", "stale"), ("row1", "no_signal")])

    def test_versions_go_on_from_a_checkpoint_and_weights_that_nobody_announced_are_refused(self) -> None:
        server, sessions, trainer = self.bound(step=7)
        # TRL says where it goes on before any weights move.
        trainer.rollout_worker.update_model_version(8)
        with self.assertRaisesRegex(RuntimeError, "attached"):
            pickle.dumps(sessions)
        trainer.weight_transfer.pause()
        trainer.rollout_worker.update_model_version(9)
        self.assertEqual([body["resume_step"] for body in server.bodies("POST /rl/v1/runs/run/attach")], [7])
        said = [(body["version"], body["phase"]) for body in server.bodies("POST /rl/v1/runs/run/policy")]
        self.assertEqual((said, trainer.rollout_worker.versions), ([(9, "pausing"), (9, "live")], [8, 9]))
        with self.assertRaisesRegex(Refused, "weights"):
            trainer.rollout_worker.update_model_version(10)
        # What reaches the worker's process speaks for the same incarnation.
        factory = pickle.loads(pickle.dumps(sessions))
        self.assertEqual((type(factory), factory._about, factory._open), (Factory, ("run", 2), opened))
        self.assertEqual(pickle.loads(pickle.dumps(_Taken([1], print))), [1])

    def test_a_session_that_is_closed_lets_its_group_go(self) -> None:
        begun, go = threading.Event(), threading.Event()

        def harness(_: Any) -> float:
            begun.set()
            go.wait()
            return 1.0

        server, groups = self.groups(encoder.simple([1.0, 1.0]), harness=harness)
        groups.run.attach()
        session = Factory(lambda: groups, "run", 2, 2)().create("one", seed=0)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(session.wait_for_completion)
            begun.wait()
            session.close()
            session.close()
            go.set()
            with self.assertRaisesRegex(RuntimeError, "closed"):
                waiting.result()
        self.assertEqual(len(server.bodies(f"POST /rl/v1/groups/{server.named[0]}/cancel")), 1)

    def test_the_end_of_an_agents_time_is_told_and_its_turns_are_there(self) -> None:
        header = encoder.simple([1.0])
        header["members"][0]["end"] = header["rows"][0]["end"] = "agent_timeout"
        _, groups = self.groups(header)
        groups.run.attach()
        session = Factory(lambda: groups, "run", 2, 1)({"temperature": 1.0}).create("one", seed=0)
        with self.assertRaises(TimeoutError):
            session.wait_for_completion()
        self.assertEqual(len(session.fetch_training_trace().turns), 2)
        self.assertEqual(session.verify([]).env_reward, 1.0)
        with self.assertRaisesRegex(Refused, "proxy_trace"):
            session.fetch_proxy_trace()

    def test_rows_of_another_temperature_are_refused(self) -> None:
        _, groups = self.groups(encoder.simple([1.0]))
        groups.run.attach()
        session = Factory(lambda: groups, "run", 2, 1)({"temperature": 0.5}).create("one", seed=0)
        session.wait_for_completion()
        with self.assertRaisesRegex(Refused, "temperature"):
            session.fetch_training_trace()


if __name__ == "__main__":
    unittest.main()
