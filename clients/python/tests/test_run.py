import asyncio
import base64
import inspect
import io
import json
import tarfile
import threading
import unittest
from typing import Any

from paddock_rl import (
    AsyncPaddock,
    AsyncRun,
    ClaimLost,
    CursorGone,
    Evaluating,
    FeedStopped,
    Fenced,
    Full,
    GroupsFailed,
    Paddock,
    Rejected,
    Run,
    Unanswered,
    advantages,
)

from . import encoder
from .stand_in import Asked, Reply, StandIn, refuses, says

RUN = "/rl/v1/runs/run"


def claim(number: int, **more: Any) -> dict[str, Any]:
    known = {
        "claim_id": f"c{number}",
        "group_id": f"g{number}",
        "round": 0,
        "lease_s": 300,
        "again": False,
        "settled": {"usable": 2},
    }
    return {**known, **more}


def rows(number: int) -> Reply:
    header = {**encoder.simple([1.0, 0.0, None]), "group_id": f"g{number}", "claim_id": f"c{number}"}
    return says(encoder.encode(header), **{"content-type": "application/vnd.paddock.rows"})


class Scripted(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StandIn()
        self.addCleanup(self.server.close)
        self.server.on("POST /rl/v1/runs", says({"run_id": "run", "capture": "tokens"}, 201))
        attached = {
            "incarnation": 7,
            "resume_step": None,
            "undone": {"dispositions": 0, "rows": 0},
            "again": [],
            "cursor": "run:7:0",
        }
        self.server.on(f"POST {RUN}/attach", says(attached))
        self.server.on(f"POST {RUN}/claims", says({"claims": [claim(1)]}), says({"claims": []}))
        self.server.on("GET /rl/v1/groups/g1/rounds/0/rows", rows(1))
        self.server.on("GET /rl/v1/groups/g2/rounds/0/rows", rows(2))
        self.server.on("POST /rl/v1/claims/c1/renew", says({}))
        self.server.on("POST /rl/v1/claims/c2/renew", says({}))
        self.server.on("DELETE /rl/v1/claims/c1", (204, {}, b""))
        self.server.on("DELETE /rl/v1/claims/c2", (204, {}, b""))
        counts = {"running": 0, "settled_unclaimed": 0, "claimed": 0, "done": 1, "failed": 0}
        self.server.on(f"GET {RUN}", says({"run_id": "run", "closed": True, "counts": counts}))
        self.paddock = Paddock(self.server.url, "secret")

    def run_of(self, attached: bool = True) -> Run:
        run = self.paddock.run("run", purpose="train")
        self.addCleanup(run.close)
        if attached:
            run.attach()
        return run


class Trainer(Scripted):
    def test_names_its_engines(self) -> None:
        run = self.run_of()
        state = [{"url": "http://a:1", "state": "serving", "label": None}]
        self.server.on(f"PUT {RUN}/engines", says({"engines": state}))
        self.assertEqual(run.engines(["http://a:1", {"url": "http://b:2", "key_ref": "env:KEY"}]), state)
        wanted = {"incarnation": 7, "engines": [{"url": "http://a:1"}, {"url": "http://b:2", "key_ref": "env:KEY"}]}
        self.assertEqual(self.server.bodies(f"PUT {RUN}/engines"), [wanted])

    def test_claims_trains_and_says_so(self) -> None:
        run = self.run_of()
        self.assertEqual(run.opened["capture"], "tokens")
        (group,) = run.claim()
        self.assertEqual((group.claim_id, group.group_id, group.settled), ("c1", "g1", {"usable": 2}))
        self.assertIn("claim_id=c1", next(asked.path for asked in self.server.asked if asked.path.endswith("rows?claim_id=c1")))
        self.server.on(f"POST {RUN}/dispositions", says({"accepted": 3, "repeated": 0, "claims_done": ["c1"]}))
        done = run.dispose_group(group, 4, computed=advantages(group, "mean"))
        self.assertEqual((done.accepted, done.claims_done), (3, ["c1"]))
        (body,) = self.server.bodies(f"POST {RUN}/dispositions")
        self.assertEqual(body["incarnation"], 7)
        said = [(row["row"], row["step"], row["outcome"], row["advantage"], row["reward_used"]) for row in body["dispositions"]]
        self.assertEqual(said, [("row0", 4, "used", 0.5, 1.0), ("row1", 4, "used", -0.5, 0.0), ("row2", 4, "skipped", None, None)])
        self.assertEqual(body["dispositions"][2]["reason"], "no_number")

    def test_a_round_without_signal_is_said_as_such_and_an_outcome_given_wins(self) -> None:
        run = self.run_of()
        (group,) = run.claim()
        self.server.on(f"POST {RUN}/dispositions", says({"accepted": 3, "repeated": 0, "claims_done": []}))
        run.dispose_group(group, 4, computed=advantages(group, shape=lambda group: {"r0": 1.0, "r1": 1.0}))
        run.dispose_group(group, 4, "stale", reason="age 3")
        run.dispose_group(group, 4, computed=advantages(group), left_out={"row1": "truncated"})
        first, second, third = self.server.bodies(f"POST {RUN}/dispositions")
        self.assertEqual([row["outcome"] for row in first["dispositions"]], ["no_signal", "no_signal", "skipped"])
        self.assertEqual([row["outcome"] for row in third["dispositions"]], ["used", "truncated", "skipped"])
        self.assertEqual({(row["outcome"], row["reason"]) for row in second["dispositions"]}, {("stale", "age 3")})
        with self.assertRaises(ValueError):
            run.dispose_group(group, 4)

    def test_nobody_speaks_for_a_run_before_it_has_attached(self) -> None:
        run = self.run_of(attached=False)
        with self.assertRaisesRegex(RuntimeError, "attach"):
            run.claim()
        run.join(9)
        run.claim()
        self.assertEqual(self.server.bodies(f"POST {RUN}/claims")[0]["incarnation"], 9)

    def test_who_is_fenced_is_told(self) -> None:
        run = self.run_of()
        self.server.on(f"POST {RUN}/checkpoint", refuses(409, "FENCED"))
        with self.assertRaises(Fenced):
            run.checkpoint(3)

    def test_an_answer_to_attach_or_to_a_claim_that_is_lost_is_not_asked_for_twice(self) -> None:
        run = self.run_of()
        self.server.on(f"POST {RUN}/attach", lambda asked: asked.drop(), says({}))
        self.server.on(f"POST {RUN}/claims", lambda asked: asked.drop(), says({"claims": []}))
        with self.assertRaises(Unanswered):
            run.attach()
        with self.assertRaises(Unanswered):
            run.claim()

    def test_groups_of_ones_own_get_an_id_so_that_asking_twice_is_asking_once(self) -> None:
        run = self.run_of()
        self.server.on(f"POST {RUN}/groups", lambda asked: asked.drop(), says({"accepted": [], "capacity": {"groups": 4}}, 202))
        self.assertEqual(run.submit({"task": "sum", "n": 8}).capacity, {"groups": 4})
        first, second = self.server.bodies(f"POST {RUN}/groups")
        self.assertEqual(first, second)
        self.assertTrue(first["groups"][0]["group_id"])

    def test_where_there_is_no_room_the_refused_are_asked_for_again(self) -> None:
        run = self.run_of()
        full = refuses(429, "FULL", headers={"retry-after": "0"}, accepted=[{"group_id": "a"}], refused=["b"])
        self.server.on(f"POST {RUN}/groups", full, says({"accepted": [{"group_id": "b"}], "capacity": None}, 202))
        wanted = [{"group_id": "a", "task": "t", "n": 2}, {"group_id": "b", "task": "t", "n": 2}]
        found = run.submit(wanted, wait_s=60)
        self.assertEqual([group["group_id"] for group in found.accepted], ["a", "b"])
        self.assertEqual(self.server.bodies(f"POST {RUN}/groups")[1]["groups"], [wanted[1]])
        self.server.on(f"POST {RUN}/groups", full)
        with self.assertRaises(Full):
            run.submit(wanted)

    def test_calls_of_groups_rollouts_and_evals_go_where_the_protocol_says(self) -> None:
        run = self.run_of(attached=False)
        calls = {
            "POST /rl/v1/groups/g%2F1/rounds": lambda: self.paddock.open_round("g/1", n=4),
            "POST /rl/v1/groups/g/cancel": lambda: self.paddock.cancel_group("g"),
            "POST /rl/v1/rollouts/r/cancel": lambda: self.paddock.cancel_rollout("r"),
            "POST /rl/v1/rollouts": lambda: self.paddock.open_rollout("g", slot=1),
            "GET /rl/v1/rollouts/r": lambda: self.paddock.rollout("r", wait_s=5),
            "POST /rl/v1/rollouts/r/end": lambda: self.paddock.end_rollout("r"),
            "POST /rl/v1/rollouts/r/verdict": lambda: self.paddock.verdict("r", "late", None),
            f"POST {RUN}/evals": lambda: run.eval(["sum"], split="test", k=4, version=2),
            f"GET {RUN}/evals/e%2F1": lambda: run.eval_state("e/1", wait_s=5),
            f"POST {RUN}/evals/e/cancel": lambda: run.cancel_eval("e"),
            f"POST {RUN}/close": run.finish,
            f"POST {RUN}/shelve": lambda: run.shelve("full"),
            f"POST {RUN}/resume": run.resume,
            "POST /rl/v1/rollouts/r/shelve": lambda: run.paddock.shelve("r"),
            "POST /rl/v1/rollouts/r/resume": lambda: run.paddock.resume("r"),
            "POST /rl/v1/calls/c/probes": lambda: run.probe("c", 2, 8, answer={}, suffix=(5, 6), verifier={"rule": "exact", "gold": "x"}),
            f"GET {RUN}/metrics": lambda: run.recorded_metrics(3),
            f"GET {RUN}": run.state,
        }
        for route, call in calls.items():
            self.server.on(route, says({}))
            call()
            asked = self.server.asked[-1]
            self.assertEqual(f"{asked.method} {asked.path.split('?')[0]}", route)
        self.assertEqual(self.server.bodies("POST /rl/v1/rollouts/r/verdict"), [{"source": "late", "reward": None}])
        evaluated = self.server.bodies(f"POST {RUN}/evals")[0]
        self.assertTrue(evaluated.pop("eval_id"))
        self.assertEqual(evaluated, {"tasks": ["sum"], "split": "test", "k": 4, "version": 2})
        self.assertEqual(self.server.bodies(f"POST {RUN}/shelve"), [{"reason": "full"}])
        probed = {"k": 2, "max_tokens": 8, "temperature": 1.0, "answer": {}, "suffix": [5, 6], "verifier": {"rule": "exact", "gold": "x"}}
        self.assertEqual(self.server.bodies("POST /rl/v1/calls/c/probes"), [probed])
        opened = self.server.bodies("POST /rl/v1/rollouts")[0]
        self.assertEqual((opened["group_id"], opened["slot"]), ("g", 1))
        self.assertTrue(opened["idempotency_key"])

    def test_tasks_are_asked_for_until_there_are_no_more(self) -> None:
        pages = says({"tasks": [{"name": "a"}], "next": "c1"}), says({"tasks": [{"name": "b"}], "next": None})
        self.server.on("GET /rl/v1/tasks", *pages)
        asked = {"pass_rate": (0.2, 0.8), "attempts": (4, None), "unused_since": "2026-03-01"}
        found = self.paddock.tasks(run="r", by=["harness", "version"], tasks=["d1", "d2"], **asked)
        self.assertEqual([line["name"] for line in found], ["a", "b"])
        first, second = (asked.path.split("?")[1] for asked in self.server.asked if asked.path.startswith("/rl/v1/tasks"))
        expected = "run=r&task=d1%2Cd2&by=harness%2Cversion&pass_rate=0.2..0.8&attempts=4..&unused_since=2026-03-01"
        expected += "&sort=pass_rate&order=asc&limit=500"
        self.assertEqual(first, expected)
        self.assertEqual(second, f"{expected}&after=c1")
        self.assertEqual(self.paddock.tasks(tasks=[]), [])

    def test_work_is_verified_under_its_key_and_waited_for(self) -> None:
        pending, done = {"state": "pending", "verdict": None}, {"state": "done", "verdict": {"status": "scored", "reward": 1.0}}
        self.server.on("POST /rl/v1/verify", refuses(503, "VERIFY_FAILED"), says(pending))
        self.server.on("GET /rl/v1/verify/a%2F1", says(pending), says(done))
        files = {"/workspace/report.json": "{}", "workspace/b": b"\x00"}
        self.assertEqual(self.paddock.verify("a/1", "sum", run_id="run", files=files), done)
        first, second = (asked.body for asked in self.server.asked if asked.method == "POST")
        self.assertEqual(first, second)
        self.assertEqual({name: first[name] for name in ("idempotency_key", "task", "run_id", "answer")}, {"idempotency_key": "a/1", "task": "sum", "run_id": "run", "answer": None})
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(first["archive"]))) as tar:
            self.assertEqual([(one.name, one.mtime, one.uid) for one in tar], [("workspace/report.json", 0, 0), ("workspace/b", 0, 0)])
        self.assertEqual(self.paddock.verification("a/1"), done)
        with self.assertRaisesRegex(ValueError, "give one of them"):
            self.paddock.verify("b", "sum", files=files, archive=b"")

        async def waited() -> Any:
            async with AsyncPaddock(self.server.url, "secret") as paddock:
                return await paddock.verify("a/1", "sum", answer="4")

        self.assertEqual(asyncio.run(waited()), done)

    def test_an_evaluation_is_waited_for_until_it_has_ended(self) -> None:
        running, done = {"state": "running", "result": None}, {"state": "done", "result": {"mean": 0.5}}
        self.server.on(f"GET {RUN}/evals/e", says(running), says(done))
        self.assertEqual(self.run_of(attached=False).eval_result("e"), done)

        async def waited() -> Any:
            async with AsyncPaddock(self.server.url, "secret") as paddock, await paddock.run("run") as run:
                return await run.eval_result("e")

        self.server.on(f"GET {RUN}/evals/e", says(running), says(done))
        self.assertEqual(asyncio.run(waited()), done)

    def test_a_push_that_evaluations_hold_up_names_them(self) -> None:
        body = {"error": {"code": "EVAL_RUNNING", "message": "no", "data": {"evals": ["e1", "e2"]}}}
        self.server.on(f"POST {RUN}/policy", says(body, 409))
        with self.assertRaises(Evaluating) as caught:
            self.run_of().policy(3, "pausing")
        self.assertEqual(caught.exception.evals, ["e1", "e2"])

    def test_policy_and_metrics_say_what_they_were_told(self) -> None:
        run = self.run_of()
        self.server.on(f"POST {RUN}/policy", says({"phase": "live"}))
        self.server.on(f"POST {RUN}/metrics", says({}))
        reload = {"path": "/collective_rpc", "body": {"method": "reload_weights"}}
        run.policy(3, "live", step=2, label="step-3", requests=[reload], wait_s=5)
        run.metrics(3, {"loss": 0.5}, mismatch={"kl": 0.0, "max": 0.1, "p99": 0.1})
        (policy,) = self.server.bodies(f"POST {RUN}/policy")
        said = {"incarnation": 7, "version": 3, "phase": "live", "step": 2, "mode": "drain", "timeout_s": 5}
        self.assertEqual(policy, {**said, "label": "step-3", "requests": [reload]})
        (metrics,) = self.server.bodies(f"POST {RUN}/metrics")
        self.assertEqual(metrics["mismatch"], {"kl": 0.0, "max": 0.1, "p99": 0.1})


    def test_one_of_several_policies_is_named(self) -> None:
        run = self.run_of()
        self.server.on(f"POST {RUN}/policy", says({"phase": "live"}))
        self.server.on(f"POST {RUN}/claims", says({"claims": []}))
        done = {"running": 0, "settled_unclaimed": 0, "claimed": 0}
        policies = {"guide": {"counts": done}, "opener": {"counts": {**done, "settled_unclaimed": 1}}}
        state = {"counts": {**done, "settled_unclaimed": 1}, "policies": policies, "closed": True}
        self.server.on(f"GET {RUN}", says(state))
        run.policy(3, "live", step=2, policy="guide", adapter={"name": "guide-3"})
        self.assertEqual(self.server.bodies(f"POST {RUN}/policy")[0]["policy"], "guide")
        # Rounds that wait for another policy keep nobody.
        self.assertEqual(list(run.groups(policy="guide")), [])
        self.assertEqual(self.server.bodies(f"POST {RUN}/claims")[0]["policy"], "guide")


class Leasing(Scripted):
    def test_what_is_held_is_renewed_until_it_is_given_back(self) -> None:
        run = self.run_of()
        (group,) = run.claim(lease_s=0.03)
        renewed = 0
        while renewed < 3:
            renewed += self.server.seen.get(timeout=60).path == "/rl/v1/claims/c1/renew"
        run.give_back(group)
        run.close()
        # A renewal that was under way may come behind it.
        (given_back,) = [asked for asked in self.server.asked if asked.method == "DELETE"]
        self.assertIn("incarnation=7", given_back.path)

    def test_closing_gives_back_what_is_still_held_and_nothing_else(self) -> None:
        self.server.on(f"POST {RUN}/claims", says({"claims": [claim(1), claim(2)]}))
        self.server.on(f"POST {RUN}/dispositions", says({"accepted": 3, "repeated": 0, "claims_done": ["c1"]}))
        with self.run_of() as run:
            first, _ = run.claim(2)
            run.dispose_group(first, 1, "used")
        self.assertEqual(
            [asked.path.split("?")[0] for asked in self.server.asked if asked.method == "DELETE"], ["/rl/v1/claims/c2"]
        )

    def test_a_lease_that_ran_out_before_its_rows_came_is_said(self) -> None:
        refused = threading.Event()

        def refuse(asked: Asked) -> Reply:
            refused.set()
            return refuses(404, "NOT_FOUND")

        def late(asked: Asked) -> Reply:
            refused.wait(60)
            # The refusal is read by another thread of the client; until then the lease counts as held.
            while run._leases.lost("c1") is False:
                pass
            return refuses(409, "CLAIM_LOST")

        self.server.on("POST /rl/v1/claims/c1/renew", refuse)
        self.server.on("GET /rl/v1/groups/g1/rounds/0/rows", late)
        run = self.run_of()
        with self.assertRaises(ClaimLost):
            run.claim(lease_s=0.03)

    def test_groups_that_nobody_was_told_of_are_not_kept(self) -> None:
        self.server.on(f"POST {RUN}/claims", says({"claims": [claim(1), claim(2)]}))
        self.server.on("GET /rl/v1/groups/g2/rounds/0/rows", refuses(500, "INTERNAL"))
        with self.run_of() as run, self.assertRaises(Rejected):
            run.claim(2)
        self.assertEqual([asked for asked in self.server.asked if asked.method == "DELETE"], [])


class Following(Scripted):
    def test_groups_come_until_the_run_is_closed_and_empty(self) -> None:
        going = {"running": 1, "settled_unclaimed": 0, "claimed": 0, "done": 0, "failed": 0}
        over = {**going, "running": 0}
        self.server.on(
            f"POST {RUN}/claims",
            says({"claims": []}),
            lambda asked: asked.drop(),
            says({"claims": [claim(1)]}),
            says({"claims": []}),
        )
        self.server.on(f"GET {RUN}", says({"closed": True, "counts": going}), says({"closed": True, "counts": over}))
        run = self.run_of()
        self.assertEqual([group.group_id for group in run.groups()], ["g1"])

    def test_a_feed_that_has_stopped_is_raised_once_nothing_of_it_is_under_way(self) -> None:
        run = self.run_of()
        stopped = {"seed": 0, "drawn": 9, "stopped": {"reason": "groups_failed", "message": "the last 8 rounds failed"}}
        counts = {"running": 1, "settled_unclaimed": 0, "claimed": 0}
        self.server.on(f"POST {RUN}/claims", says({"claims": []}))
        self.server.on(
            f"GET {RUN}",
            says({"closed": False, "feed": stopped, "counts": counts}),
            says({"closed": False, "feed": stopped, "counts": {**counts, "running": 0}}),
        )
        with self.assertRaises(FeedStopped) as raised:
            list(run.groups())
        self.assertEqual(raised.exception.reason, "groups_failed")
        self.assertEqual(len(self.server.bodies(f"POST {RUN}/claims")), 2)

    def test_a_run_that_stopped_at_its_share_of_missing_numbers_is_raised_with_the_causes(self) -> None:
        run = self.paddock.run("run", max_null_share=0.2)
        run.attach(None)
        self.assertEqual(self.server.bodies("POST /rl/v1/runs")[0]["max_null_share"], 0.2)
        stopped = refuses(409, "RUN_NULL_SHARE", "9 of 20 ended rollouts have no number: sum (9 unscorable)")
        self.server.on(f"POST {RUN}/claims", says({"claims": [claim(1)]}), stopped)
        with self.assertRaisesRegex(Rejected, "RUN_NULL_SHARE: 9 of 20 .*9 unscorable"):
            list(run.groups())

    def test_groups_that_all_failed_are_raised_once_with_the_reasons(self) -> None:
        counts = {"running": 0, "settled_unclaimed": 0, "claimed": 0, "failed": 1}
        self.server.on(f"POST {RUN}/claims", says({"claims": []}), says({"claims": []}), says({"claims": [claim(1)]}))
        self.server.on(f"GET {RUN}", says({"closed": False, "feed": None, "counts": counts}))
        self.server.on(f"POST {RUN}/groups", says({"accepted": [{"group_id": "g9", "state": "new"}], "refused": []}))
        self.server.on("GET /rl/v1/groups/g9", says({"group_id": "g9", "rounds": [{"state": "failed"}]}))
        self.server.on("GET /rl/v1/groups/g9/rounds/0/rows", rows(9))
        run = self.run_of()
        run.submit({"group_id": "g9", "task": "t", "n": 1})
        with self.assertRaises(GroupsFailed) as raised:
            next(run.groups())
        self.assertEqual(list(raised.exception.reasons), ["g9"])
        self.assertIn("g9: ", str(raised.exception))
        # It is said once: later groups are waited for.
        self.assertEqual(next(run.groups()).group_id, "g1")

    def test_a_number_that_is_not_finite_is_named(self) -> None:
        run = self.run_of()
        for said in (
            lambda: run.metrics(3, {"loss": 1.0, "kl": float("nan")}),
            lambda: run.metrics(3, {}, mismatch={"kl": float("inf")}),
            lambda: run.dispose([{"row": "row7", "claim_id": "c", "step": 3, "outcome": "used", "advantage": float("nan")}]),
        ):
            with self.assertRaises(ValueError) as raised:
                said()
            self.assertRegex(str(raised.exception), r"(kl|advantage) in .*(step 3|row7) is (nan|inf)")

    def test_as_many_groups_as_asked_for(self) -> None:
        self.server.on(f"POST {RUN}/claims", says({"claims": [claim(1), claim(2)]}), says({"claims": [claim(1)]}))
        run = self.run_of()
        self.assertEqual([group.group_id for group in run.groups(3, max_groups=2)], ["g1", "g2", "g1"])
        self.assertEqual([body["max_groups"] for body in self.server.bodies(f"POST {RUN}/claims")], [2, 1])

    def test_events_go_on_behind_the_last_cursor_heartbeats_aside(self) -> None:
        lines = b'{"cursor": "run:7:1", "type": "group", "group_id": "g1"}\n{"cursor": "run:7:2", "type": "heartbeat"}\n'
        more = b'{"cursor": "run:7:3", "type": "policy"}\n'
        self.server.on(f"GET {RUN}/events", says(lines), says(b""), says(more), refuses(410, "CURSOR_GONE", cursor="run:7:9"))
        run = self.run_of()
        events = run.events("run:7:0")
        self.assertEqual([next(events).cursor, next(events).type], ["run:7:1", "policy"])
        with self.assertRaises(CursorGone) as gone:
            next(events)
        self.assertEqual(gone.exception.cursor, "run:7:9")
        after = [asked.path.split("after=")[1].split("&")[0] for asked in self.server.asked if "/events" in asked.path]
        self.assertEqual(after, ["run%3A7%3A0", "run%3A7%3A2", "run%3A7%3A2", "run%3A7%3A3"])

    def test_a_turn_says_what_is_known_of_its_reward_and_none_is_not_nothing(self) -> None:
        about = {"group_id": "g", "rollout_id": "o", "session_id": "s", "call_id": "c", "call_class": "main", "turn": 3}
        said = {**about, "sampled_tokens": 9, "context_tokens": None, "entropy": 0.5, "at": 1, "cursor": "run:7:1", "type": "turn"}
        lines = [json.dumps(one) for one in (said, {**said, "rewards": {"steps": 0.0}}, {"cursor": "run:7:3", "type": "policy"})]
        self.server.on(f"GET {RUN}/events", says("\n".join(lines).encode() + b"\n"))
        events = self.run_of().events("run:7:0")
        first, second, third = (next(events).turn() for _ in range(3))
        assert first is not None and second is not None
        self.assertEqual((first.rewards, first.turn, first.rollout_id, first.context_tokens), (None, 3, "o", None))
        self.assertEqual((second.rewards, third), ({"steps": 0.0}, None))


class Asynchronous(Scripted):
    def test_is_the_same(self) -> None:
        self.server.on(f"POST {RUN}/dispositions", says({"accepted": 3, "repeated": 0, "claims_done": ["c1"]}))
        self.server.on(f"GET {RUN}/events", says(b'{"cursor": "run:7:1", "type": "group"}\n'))

        async def train() -> list[str]:
            async with AsyncPaddock(self.server.url, "secret") as paddock, await paddock.run("run", purpose="train") as run:
                await run.attach()
                seen = []
                async for group in run.groups():
                    await run.dispose_group(group, 1, computed=advantages(group))
                    seen.append(group.group_id)
                async for event in run.events():
                    seen.append(event.type)
                    break
                return seen

        self.assertEqual(asyncio.run(train()), ["g1", "group"])

    def test_a_cancelled_task_ends_its_request_at_once(self) -> None:
        reached, left = threading.Event(), threading.Event()

        def hang(asked: Asked) -> None:
            reached.set()
            asked.handler.connection.recv(1)
            left.set()

        self.server.on(f"POST {RUN}/claims", hang)

        async def train() -> None:
            async with AsyncPaddock(self.server.url, "secret") as paddock:
                run = await paddock.run("run")
                await run.attach()
                waiting = asyncio.create_task(run.claim())
                await asyncio.to_thread(reached.wait, 60)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting

        asyncio.run(train())
        self.assertTrue(left.wait(60))

    def test_each_call_of_one_is_a_call_of_the_other(self) -> None:
        for sync, twin in ((Run, AsyncRun), (Paddock, AsyncPaddock)):
            for name, method in inspect.getmembers(sync, inspect.isfunction):
                if name.startswith("_"):
                    continue
                with self.subTest(name=name):
                    own = inspect.signature(method).parameters
                    other = inspect.signature(getattr(twin, name)).parameters
                    self.assertEqual([str(each) for each in own.values()], [str(each) for each in other.values()])
