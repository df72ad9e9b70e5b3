"""`paddock_rl.trl` without TRL, which test/real has: what it asks of Paddock, what it gives to `rollout_func`, what it refuses."""

from __future__ import annotations

import subprocess
import sys
import threading
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from paddock_rl import Paddock, Rejected
from paddock_rl.trl import MultiRow, NoNumber, OpenRollout, Refused, Rollouts, paddock_reward

from . import encoder
from .stand_in import Asked, Reply, StandIn, refuses, says

EACH = 4


class Server(StandIn):
    """A run: each group that is asked for settles as `rounds` says, in their order; None is a group without a usable member."""

    def __init__(self, *rounds: encoder.Header | None, inside: bool = True) -> None:
        super().__init__()
        self.rounds = list(rounds)
        self.named: list[str] = []
        self.waiting: list[str] = []
        self.ended: list[Any] = []
        self.begun = 0
        self.stands = "settled"
        self.state = threading.Lock()
        self.on("POST /rl/v1/runs", says({"run_id": "run", "tasks": "/tasks" if inside else None}, 201))
        run = "/rl/v1/runs/run"
        self.on(f"POST {run}/attach", says({"incarnation": 2, "resume_step": None, "undone": {}, "again": [], "cursor": None}))
        self.on(f"GET {run}", says({"policy": {"version": 7, "label": "seven"}}))
        self.on(f"POST {run}/groups", self.take_groups)
        self.on(f"POST {run}/claims", self.claim)
        self.on("POST /rl/v1/rollouts", self.begin)
        for name in ("policy", "checkpoint", "metrics"):
            self.on(f"POST {run}/{name}", says({}))
        self.on(f"POST {run}/dispositions", says({"accepted": 0, "repeated": 0, "claims_done": []}))

    def take_groups(self, asked: Asked) -> Reply:
        for group in asked.body["groups"]:
            name = group["group_id"]
            found = self.rounds[len(self.named)]
            self.named.append(name)
            self.on(f"POST /rl/v1/groups/{name}/cancel", says({"settled": None}))
            self.on(f"GET /rl/v1/groups/{name}", says({"rounds": [{"state": self.stands if found else "failed"}]}))
            if found is not None:
                self.waiting.append(name)
                body = encoder.encode({**found, "group_id": name, "claim_id": f"claim of {name}"})
                self.on(f"GET /rl/v1/groups/{name}/rounds/0/rows", (200, {"content-type": "application/vnd.paddock.rows"}, body))
        return says({"accepted": [], "capacity": None}, 202)

    def claim(self, asked: Asked) -> Reply:
        # The youngest first: the order of prompts is not that of claims.
        claims = [
            {"claim_id": f"claim of {name}", "group_id": name, "round": 0, "lease_s": 300} for name in reversed(self.waiting)
        ]
        self.waiting = []
        return says({"claims": claims})

    def begin(self, asked: Asked) -> Reply:
        with self.state:
            number, self.begun = self.begun, self.begun + 1
        about = {"rollout_id": f"o{number}", "slot": asked.body.get("slot", number), "attempt": int("slot" in asked.body)}
        self.on(f"POST /rl/v1/rollouts/o{number}/end", lambda asked: self.end(about, asked))
        return says({**about, "base_url": "http://model/v1", "key": f"key {number}"}, 201)

    def end(self, about: dict[str, Any], asked: Asked) -> Reply:
        with self.state:
            self.ended.append(asked.body)
        verdict = asked.body.get("verdict") or {}
        return says({**about, "end": asked.body["end"], "reward": verdict.get("reward")})

    def disposed(self) -> list[Any]:
        return [each for body in self.bodies("POST /rl/v1/runs/run/dispositions") for each in body["dispositions"]]


class Trainer(SimpleNamespace):
    """What `Rollouts` looks at of a `GRPOTrainer`."""

    def __init__(self, rollouts: Rollouts, *, settings: dict[str, Any] | None = None, **more: Any) -> None:
        args = {"gradient_accumulation_steps": 2, "steps_per_generation": 2, "num_iterations": 1, "eval_strategy": "no"}
        known = {
            "args": SimpleNamespace(**{**args, **(settings or {})}),
            "rollout_func": rollouts,
            "reward_funcs": [paddock_reward],
            "reward_weights": [1.0],
            "accelerator": SimpleNamespace(num_processes=1),
            "tools": [],
            "mask_truncated_completions": False,
            "use_vllm": False,
            "state": SimpleNamespace(global_step=0),
            "model": SimpleNamespace(training=True),
            "num_generations": EACH,
            "processing_class": SimpleNamespace(pad_token_id=99),
            "temperature": 1.0,
            "scale_rewards": "group",
            "multi_objective_aggregation": "sum_then_normalize",
            "callbacks": [],
        }
        super().__init__(**{**known, **more})

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def tell(self, event: str, **more: Any) -> None:
        getattr(self.callbacks[0], event)(self.args, self.state, None, **more)


class TrlTest(unittest.TestCase):
    def setUp(self) -> None:
        fakes = {"transformers": SimpleNamespace(TrainerCallback=object), "trl": SimpleNamespace(__version__="1.16.0")}
        patched = mock.patch.dict(sys.modules, fakes)
        patched.start()
        self.addCleanup(patched.stop)
        self.moved: list[int] = []

    def run_of(self, server: Server) -> Any:
        self.addCleanup(server.close)
        run = Paddock(server.url, "token", patience_s=0).run()
        self.addCleanup(run.close)
        return run

    def rollouts(self, server: Server, **more: Any) -> Rollouts:
        task = {} if "harness" in more else {"task": lambda prompt: prompt}
        return Rollouts(self.run_of(server), **{"move_weights": lambda _, version: self.moved.append(version), **task, **more})

    def begun(self, rollouts: Rollouts, step: int = 3, **more: Any) -> Trainer:
        trainer = Trainer(rollouts, **more)
        trainer.state.global_step = step
        rollouts.bind(trainer)
        trainer.tell("on_train_begin")
        return trainer

    def test_one_row_for_each_prompt_in_its_order(self) -> None:
        second = encoder.simple([0.5, 0.25, 0.0, 1.0])
        for row in second["rows"]:
            row["arrays"]["token_ids"] = [each + 100 for each in row["arrays"]["token_ids"]]
        server = Server(encoder.simple([1.0, 0.0, 2.0, 4.0]), second)
        trainer = self.begun(rollouts := self.rollouts(server))
        found = rollouts(["one"] * EACH + ["two"] * EACH, trainer)
        self.assertEqual([each["task"] for each in server.bodies("POST /rl/v1/runs/run/groups")[0]["groups"]], ["one", "two"])
        self.assertEqual(found["paddock_number"], [1.0, 0.0, 2.0, 4.0, 0.5, 0.25, 0.0, 1.0])
        self.assertEqual(found["prompt_ids"], [[100, 101, 102]] * EACH + [[200, 201, 202]] * EACH)
        self.assertEqual(found["completion_ids"][0], [103, 104, 105, 106, 107])
        self.assertEqual(found["env_mask"][0], [1, 1, 0, 0, 1])
        self.assertEqual([round(value, 3) for value in found["logprobs"][0]], [-0.003, -0.004, 0.0, 0.0, -0.007])
        numbers = paddock_reward(
            [], [], **{key: found[key] for key in found if key not in ("prompt_ids", "completion_ids", "logprobs")}
        )
        self.assertEqual(numbers, found["paddock_number"])

    def test_rows_are_disposed_of_after_their_step_and_the_run_follows_the_trainers_clock(self) -> None:
        server = Server(encoder.simple([1.0, 0.0, None, 2.0]))
        trainer = self.begun(rollouts := self.rollouts(server))
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/attach"), [{"resume_step": 3}])
        rollouts(["one"] * EACH, trainer)
        self.assertEqual(server.disposed(), [])
        trainer.state.global_step = 4
        trainer.tell("on_step_end")
        said = [(each["row"], each["step"], each["outcome"], each["reward_used"], each["reason"]) for each in server.disposed()]
        expected = [("row0", 4, "used", 1.0, None), ("row1", 4, "used", 0.0, None)]
        self.assertEqual(said, [*expected, ("row2", 4, "skipped", None, "no_number"), ("row3", 4, "used", 2.0, None)])
        self.assertEqual(
            [each["advantage"] and round(each["advantage"], 3) for each in server.disposed()], [0.0, -1.0, None, 1.0]
        )
        trainer.tell("on_step_end")
        trainer.tell("on_train_end")
        self.assertEqual(len(server.disposed()), EACH)
        trainer.tell("on_save")
        self.assertEqual(server.bodies("POST /rl/v1/runs/run/checkpoint"), [{"incarnation": 2, "step": 4}])
        trainer.tell("on_log", logs={"loss": 0.5, "grad_norm": float("nan"), "epoch": "x"})
        values = [body["values"] for body in server.bodies("POST /rl/v1/runs/run/metrics")]
        self.assertEqual(values, [{"loss": 0.5, "paddock/lost_tokens": 0.0}])

    def test_advantages_are_told_where_trls_formula_is_known(self) -> None:
        for settings, rewards, expected in (
            ({}, [1.0, 1.0, 1.0, 1.0], ("no_signal", 0.0)),
            ({"scale_rewards": "none"}, [1.0, 0.0, 1.0, 2.0], ("used", 1.0)),
            ({"scale_rewards": "batch"}, [1.0, 0.0, 1.0, 2.0], ("used", None)),
            ({"multi_objective_aggregation": "normalize_then_sum"}, [1.0, 0.0, 1.0, 2.0], ("used", None)),
        ):
            server = Server(encoder.simple(list(rewards)))
            trainer = self.begun(rollouts := self.rollouts(server), **settings)
            rollouts(["one"] * EACH, trainer)
            trainer.state.global_step = 4
            trainer.tell("on_step_end")
            last = server.disposed()[-1]
            with self.subTest(settings):
                self.assertEqual((last["outcome"], last["advantage"]), expected)
        server = Server(encoder.simple([1.0, 0.0, None, 2.0]))
        trainer = self.begun(rollouts := self.rollouts(server, null="masked_mean"))
        rollouts(["one"] * EACH, trainer)
        trainer.state.global_step = 4
        trainer.tell("on_step_end")
        self.assertEqual([each["advantage"] for each in server.disposed()], [None] * EACH)

    def test_each_pass_over_a_batch_is_a_use(self) -> None:
        server = Server(encoder.simple([1.0, 0.0, None, 2.0]))
        settings = {"steps_per_generation": 4, "num_iterations": 2}
        trainer = self.begun(rollouts := self.rollouts(server), step=0, settings=settings)
        trainer.state.global_step = 3
        rollouts(["one"] * EACH, trainer)
        for step in range(4, 8):
            trainer.state.global_step = step
            trainer.tell("on_step_end")
        self.assertEqual(
            [(each["row"], each["step"], each["use"]) for each in server.disposed()][:EACH],
            [(f"row{i}", 5, 0) for i in range(EACH)],
        )
        self.assertEqual(
            [(each["row"], each["step"], each["use"]) for each in server.disposed()][EACH:],
            [(f"row{i}", 7, 1) for i in (0, 1, 3)],
        )

    def test_a_training_that_ends_within_a_batch_leaves_no_row_to_others(self) -> None:
        server = Server(encoder.simple([1.0, 0.0, 1.0, 2.0]))
        trainer = self.begun(rollouts := self.rollouts(server), settings={"steps_per_generation": 4})
        rollouts(["one"] * EACH, trainer)
        trainer.state.global_step = 4
        trainer.tell("on_step_end")
        trainer.tell("on_train_end")
        self.assertEqual(
            [(each["row"], each["outcome"]) for each in server.disposed()], [(f"row{i}", "skipped") for i in range(EACH)]
        )

    def test_a_null_is_left_out_or_the_mean_or_an_error_and_never_0(self) -> None:
        round_ = encoder.simple([1.0, 0.0, None, 2.0])
        found = self.once(Server(round_))
        self.assertEqual(found["paddock_number"], [1.0, 0.0, None, 2.0])
        self.assertEqual(found["env_mask"][2], [0, 0, 0, 0, 0])
        self.assertEqual(found["completion_ids"][2], [103, 104, 105, 106, 107])
        self.assertEqual(self.once(Server(round_), null="masked_mean")["paddock_number"], [1.0, 0.0, 1.0, 2.0])
        with self.assertRaisesRegex(NoNumber, "rollout r2 .no_number."):
            self.once(Server(round_), null="raise")

    def test_a_rollout_without_a_row_is_padding_that_trains_nothing(self) -> None:
        round_ = encoder.simple([1.0, 0.0, None, 2.0])
        del round_["rows"][2]
        found = self.once(Server(round_))
        of_it = {key: found[key][2] for key in ("prompt_ids", "completion_ids", "env_mask", "logprobs", "paddock_number")}
        self.assertEqual(
            of_it, {"prompt_ids": [99], "completion_ids": [99], "env_mask": [0], "logprobs": [0.0], "paddock_number": None}
        )

    def test_a_group_without_a_usable_member_is_never_waited_for(self) -> None:
        found = self.once(Server(None))
        self.assertEqual(found["paddock_number"], [None] * EACH)
        self.assertEqual(found["env_mask"], [[0]] * EACH)
        for null in ("raise", "masked_mean"):
            with self.subTest(null), self.assertRaises(NoNumber):
                self.once(Server(None), null=null)

    def test_members_with_a_number_go_before_others_and_what_is_over_is_said(self) -> None:
        server = Server(encoder.simple([None, 0.0, None, 2.0, 1.0]))
        trainer = self.begun(rollouts := self.rollouts(server))
        found = rollouts(["one"] * EACH, trainer)
        self.assertEqual(found["paddock_number"], [None, 0.0, 2.0, 1.0])
        trainer.state.global_step = 4
        trainer.tell("on_step_end")
        self.assertEqual([each["outcome"] for each in server.disposed()], ["skipped", "used", "skipped", "used", "used"])

    def test_several_rows_are_refused_or_the_main_chain_and_what_is_lost_is_counted(self) -> None:
        round_ = encoder.simple([1.0, 0.0, None, 2.0])
        round_["rows"].append(encoder.row("second", "r0", 1.0, [(3, 1)]))
        round_["rows"].append(encoder.row("of a null", "r2", None, [(3, 1)]))
        with self.assertRaisesRegex(MultiRow, "multi_row: rollout r0 has 2 rows"):
            self.once(Server(round_))
        trainer = self.begun(rollouts := self.rollouts(server := Server(round_), several="main_chain"))
        self.assertEqual(rollouts(["one"] * EACH, trainer)["paddock_row"][0], "row0")
        self.assertEqual(rollouts.lost_tokens, 1)
        trainer.state.global_step = 4
        trainer.tell("on_step_end")
        self.assertEqual([each["reason"] for each in server.disposed() if each["row"] == "second"], ["main_chain"])

    def once(self, server: Server, **more: Any) -> dict[str, list[Any]]:
        trainer = self.begun(rollouts := self.rollouts(server, **more))
        return rollouts(["one"] * EACH, trainer)

    def test_weights_move_between_pausing_and_live_once_a_step(self) -> None:
        server = Server(encoder.simple([1.0] * EACH), encoder.simple([1.0] * EACH))
        trainer = self.begun(rollouts := self.rollouts(server))
        rollouts(["one"] * EACH, trainer)
        rollouts(["one"] * EACH, trainer)
        said = [(body["version"], body["phase"]) for body in server.bodies("POST /rl/v1/runs/run/policy")]
        self.assertEqual((said, self.moved), ([(3, "pausing"), (3, "live")], [3]))

    def test_weights_of_a_checkpoint_keep_their_name(self) -> None:
        round_ = encoder.simple([1.0] * EACH)
        for row in round_["rows"]:
            row["versions"] = [[start, end, 7, 7] for start, end, _, _ in row["versions"]]
        server = Server(round_)
        trainer = self.begun(rollouts := self.rollouts(server), step=7)
        rollouts(["one"] * EACH, trainer)
        self.assertEqual([body.get("label") for body in server.bodies("POST /rl/v1/runs/run/policy")], [None, "seven"])

    def test_weights_that_could_not_be_moved_are_told(self) -> None:
        def breaks(trainer: Any, version: int) -> None:
            raise OSError("no room")

        server = Server()
        trainer = self.begun(rollouts := self.rollouts(server, move_weights=breaks))
        with self.assertRaisesRegex(OSError, "no room"):
            rollouts(["one"] * EACH, trainer)
        self.assertEqual([body["phase"] for body in server.bodies("POST /rl/v1/runs/run/policy")], ["pausing", "failed"])

    def test_with_vllm_trls_own_way_is_announced_around(self) -> None:
        server = Server(encoder.simple([1.0] * EACH))
        rollouts = self.rollouts(server, move_weights=None)
        vllm = SimpleNamespace(sync_weights=lambda: self.moved.append(len(server.bodies("POST /rl/v1/runs/run/policy"))))
        trainer = self.begun(rollouts, use_vllm=True, vllm_generation=vllm)
        trainer.vllm_generation.sync_weights()
        rollouts(["one"] * EACH, trainer)
        self.assertEqual([body["phase"] for body in server.bodies("POST /rl/v1/runs/run/policy")], ["pausing", "live"])
        self.assertEqual(self.moved, [1])

    def test_rows_of_other_weights_or_temperature_are_refused(self) -> None:
        old = encoder.simple([1.0] * EACH)
        old["rows"][1]["versions"][0] = [3, 5, 2, 3]
        with self.assertRaisesRegex(Refused, "stale: row row1 was sampled under version 2, and 3 is live"):
            self.once(Server(old))
        trainer = self.begun(rollouts := self.rollouts(Server(encoder.simple([1.0] * EACH))), temperature=0.9)
        with self.assertRaisesRegex(Refused, "temperature"):
            rollouts(["one"] * EACH, trainer)

    def test_groups_of_a_process_before_are_stale(self) -> None:
        server = Server(encoder.simple([1.0, 0.0, 1.0, 2.0]))
        before = encoder.encode({**encoder.simple([1.0]), "group_id": "before", "claim_id": "claim of before"})
        server.on("GET /rl/v1/groups/before/rounds/0/rows", (200, {"content-type": "application/vnd.paddock.rows"}, before))
        server.waiting.append("before")
        trainer = self.begun(rollouts := self.rollouts(server))
        rollouts(["one"] * EACH, trainer)
        self.assertEqual([(each["row"], each["outcome"]) for each in server.disposed()], [("row0", "stale")])

    def test_a_harness_does_the_rollouts_and_what_came_to_nothing_is_tried_again(self) -> None:
        seen: list[OpenRollout] = []

        def harness(opened: OpenRollout) -> Any:
            seen.append(opened)
            return {0: raises, 1: lambda: None, 2: lambda: 0.5}.get(len(seen) - 1, lambda: {"end": "budget", "verdict": judged})()

        def raises() -> None:
            raise ConnectionError("the machine is gone")

        judged = {"source": "judge", "reward": 1.0}
        server = Server(encoder.simple([1.0, 0.0, 1.0, 2.0]), inside=False)
        trainer = self.begun(rollouts := self.rollouts(server, harness=harness, spare=2, at_once=1, group={"deadline_s": 60}))
        rollouts([[{"role": "user", "content": "Add."}]] * EACH, trainer)
        (asked,) = server.bodies("POST /rl/v1/runs/run/groups")[0]["groups"]
        self.assertEqual((asked["n"], asked["top_up"], asked["deadline_s"], asked["task"]["instruction"]), (EACH, 2, 60, "Add."))
        self.assertEqual(seen[0].base_url, "http://model/v1")
        self.assertEqual([each.attempt for each in seen], [0, 1, 0, 0, 0, 0])
        self.assertEqual(
            [body["end"] for body in server.ended], ["infra", "completed", "completed", "budget", "budget", "budget"]
        )
        self.assertEqual([body.get("verdict", {}).get("reward") for body in server.ended], [None, None, 0.5, 1.0, 1.0, 1.0])
        self.assertEqual(server.ended[1]["verdict"]["status"], "unscorable")
        self.assertEqual(len(server.bodies(f"POST /rl/v1/groups/{server.named[0]}/cancel")), 1)

    def test_no_more_than_spare_further_rollouts_begin(self) -> None:
        server = Server(None, inside=False)
        trainer = self.begun(rollouts := self.rollouts(server, harness=lambda opened: None, spare=2))
        rollouts(["one"] * EACH, trainer)
        self.assertEqual(server.begun, EACH + 2)

    def test_a_deadline_ends_the_trying_and_another_refusal_is_an_error(self) -> None:
        for code, stands, ends in (
            ("ROUND_SETTLED", "settled", True),
            ("ROUND_SETTLED", "running", False),
            ("FENCED", "settled", False),
        ):
            server = Server(encoder.simple([1.0, 0.0, 1.0, 2.0]), inside=False)
            server.stands = stands
            server.on("POST /rl/v1/rollouts", refuses(409, code))
            trainer = self.begun(rollouts := self.rollouts(server, harness=lambda opened: 1.0))
            with self.subTest(code, stands=stands):
                if ends:
                    self.assertEqual(len(rollouts(["one"] * EACH, trainer)["prompt_ids"]), EACH)
                else:
                    with self.assertRaisesRegex(Rejected, code):
                        rollouts(["one"] * EACH, trainer)

    def test_settings_are_refused_by_name(self) -> None:
        outside = {"harness": lambda opened: 1.0}
        for code, build in {
            "no_harness": lambda: Rollouts(self.run_of(Server(inside=False))),
            "two_harnesses": lambda: Rollouts(self.run_of(Server()), **outside),
            "no_task": lambda: Rollouts(self.run_of(Server())),
            "group_key": lambda: self.rollouts(Server(), group={"over": 2}),
            "number": lambda: self.rollouts(Server(), spare=-1),
            "choice": lambda: self.rollouts(Server(), null="zero"),
        }.items():
            with self.subTest(code), self.assertRaisesRegex(Refused, f"^{code}: "):
                build()
        for code, more in {
            "rollout_func": {"rollout_func": None},
            "reward_funcs": {"reward_funcs": [paddock_reward, len]},
            "processes": {"accelerator": SimpleNamespace(num_processes=2)},
            "tools": {"tools": [len]},
            "mask_truncated_completions": {"mask_truncated_completions": True},
            "batch": {"settings": {"steps_per_generation": 3}},
            "evaluation": {"settings": {"eval_strategy": "steps"}},
            "weights": {"use_vllm": True},
        }.items():
            with self.subTest(code), self.assertRaisesRegex(Refused, f"^{code}: "):
                self.begun(self.rollouts(Server()), **more)
        with self.assertRaisesRegex(Refused, "^weights: the engine would keep"):
            self.begun(self.rollouts(Server(), move_weights=None))
        with self.assertRaisesRegex(Refused, "^reward_funcs: "):
            self.begun(self.rollouts(Server()), reward_weights=[2.0])
        with (
            mock.patch.dict(sys.modules, {"trl": SimpleNamespace(__version__="1.4.0")}),
            self.assertRaisesRegex(Refused, "^old_trl: "),
        ):
            self.begun(self.rollouts(Server()))

    def test_calls_that_would_compare_or_train_what_they_should_not_are_refused(self) -> None:
        trainer = self.begun(rollouts := self.rollouts(Server()))
        for prompts in (["one"] * 3 + ["two"], ["one"] * 3):
            with self.assertRaisesRegex(Refused, "^groups: "):
                rollouts(prompts, trainer)
        trainer.model.training = False
        with self.assertRaisesRegex(Refused, "^evaluation: "):
            rollouts(["one"] * EACH, trainer)
        with self.assertRaisesRegex(Refused, "^not_bound: "):
            rollouts(["one"] * EACH, Trainer(rollouts))

    def test_a_harness_that_leaves_its_verdict_for_later_is_refused(self) -> None:
        server = Server(None, inside=False)
        trainer = self.begun(rollouts := self.rollouts(server, harness=lambda opened: {"end": "completed"}))
        with self.assertRaisesRegex(Refused, "^verdict: "):
            rollouts(["one"] * EACH, trainer)
        # Nobody will end these rollouts: their group does not wait for them.
        self.assertEqual(len(server.bodies(f"POST /rl/v1/groups/{server.named[0]}/cancel")), 1)

    def test_nothing_of_trl_is_imported_before_bind(self) -> None:
        program = "import sys, paddock_rl.trl; print([name for name in ('trl', 'transformers', 'torch') if name in sys.modules])"
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout.strip(), "[]")
        program = "import sys, paddock_rl; print('paddock_rl.trl' in sys.modules)"
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout.strip(), "False")


if __name__ == "__main__":
    unittest.main()
