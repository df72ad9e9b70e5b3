"""`paddock_rl.agentlightning` without Agent Lightning, which test/real has: its routes, what a rollout says of itself, and what is refused."""

from __future__ import annotations

import json
import time
import unittest
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from paddock_rl import Paddock
from paddock_rl.agentlightning import Server
from paddock_rl.groups import Groups, Refused

from . import encoder
from .stand_in import says
from .test_trl import Server as Run


@dataclass
class Collected:
    """What its rollout manager makes of one rollout."""

    state: str
    triplets: list[dict[str, Any]]
    reward: float | None
    error: str | None


def ask(server: Server, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    asked = urllib.request.Request(server.url + path, None if body is None else json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(asked) as answer:
            said = answer.read()
            return answer.status, json.loads(said) if said else None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def collected(server: Server, asked: list[dict[str, Any]]) -> list[Collected]:
    """Asks as its rollout manager does at 1.0.2 (`AglRolloutManager.enqueue_and_wait_until_completed`)."""
    assert ask(server, "DELETE", "/api/models")[0] == 200
    assert ask(server, "POST", "/api/models", [{"model": "m", "endpoint": "http://engine/v1", "version": 0}])[0] == 201
    named = [{"is_train": True, "rollout_id": f"{time.monotonic_ns()}-{place}", **each} for place, each in enumerate(asked)]
    status, made = ask(server, "POST", "/api/rollouts", named)
    assert (status, [one["rollout_id"] for one in made]) == (201, [one["rollout_id"] for one in named]), made
    found = []
    for one in named:
        path = f"/api/rollouts/{one['rollout_id']}"
        while (told := ask(server, "GET", path)[1]["rollout"]["status"])["state"] not in ("succeeded", "failed"):
            time.sleep(0.01)
        events = ask(server, "GET", f"{path}/events?format=triplet&include_routed_experts=true")[1]
        rewards = [event["data"]["value"] for event in events if event["event_type"] == "reward"]
        triplets = [event["data"] for event in events if event["event_type"] == "model_request"]
        found.append(Collected(told["state"], triplets, rewards[-1] if rewards else None, told["error_message"]))
        assert ask(server, "DELETE", path) == (204, None)
        assert ask(server, "GET", path)[0] == 404
    return found


class AgentLightning(unittest.TestCase):
    def server(self, *rounds: Any, n: int = 2, **more: Any) -> tuple[Run, Server]:
        run = Run(*rounds)
        self.addCleanup(run.close)
        run.on("PUT /rl/v1/runs/run/engines", says({"engines": []}))
        opened = Paddock(run.url, "token", patience_s=0).run()
        self.addCleanup(opened.close)
        server = Server(Groups(opened, task=str), n, **more)
        self.addCleanup(server.close)
        return run, server

    def test_a_rollout_tells_each_run_of_trained_tokens_with_all_before_it_as_its_prompt(self) -> None:
        _, server = self.server(encoder.simple([1.0, 0.0]))
        found = collected(server, [{"input": "one"}] * 2)
        self.assertEqual([(one.state, one.reward) for one in found], [("succeeded", 1.0), ("succeeded", 0.0)])
        ids = list(range(100, 108))
        told = [(each["prompt_token_ids"], each["response_token_ids"], [round(value, 3) for value in each["response_log_probs"]]) for each in found[0].triplets]
        self.assertEqual(told, [(ids[:3], ids[3:5], [-0.003, -0.004]), (ids[:7], ids[7:], [-0.007])])
        self.assertEqual([each["server"]["version"] for each in found[0].triplets], [3, 3])

    def test_each_step_tells_its_engines_first_and_what_the_last_had_was_trained(self) -> None:
        run, server = self.server(encoder.simple([1.0, 0.0]), encoder.simple([1.0, 0.0]), resume_step=4)
        for name in ("one", "two"):
            collected(server, [{"input": name}] * 2)
        attached = [body["resume_step"] for body in run.bodies("POST /rl/v1/runs/run/attach")]
        self.assertEqual(attached, [4])
        self.assertEqual([body["engines"] for body in run.bodies("PUT /rl/v1/runs/run/engines")], [[{"url": "http://engine/v1"}]] * 2)
        phases = [(body["version"], body["phase"]) for body in run.bodies("POST /rl/v1/runs/run/policy")]
        self.assertEqual(phases, [(5, "pausing"), (5, "live"), (6, "pausing"), (6, "live")])
        self.assertEqual([(each["row"], each["step"], each["outcome"]) for each in run.disposed()], [("row0", 5, "used"), ("row1", 5, "used")])

    def test_what_was_asked_twice_is_done_once(self) -> None:
        run, server = self.server(encoder.simple([1.0, 0.0]))
        asked = [{"input": "one", "rollout_id": name, "is_train": True} for name in "ab"]
        first, again = (ask(server, "POST", "/api/rollouts", asked) for _ in range(2))
        self.assertEqual([one["rollout_id"] for one in first[1]], [one["rollout_id"] for one in again[1]])
        while ask(server, "GET", "/api/rollouts/terminal")[1]["next_after"] < 2:
            time.sleep(0.01)
        self.assertEqual(len(run.bodies("POST /rl/v1/runs/run/groups")), 1)

    def test_the_log_of_what_has_ended_is_read_on_from_a_place(self) -> None:
        _, server = self.server(encoder.simple([1.0, None]))
        named = [{"input": {"data_id": "d"}, "rollout_id": name, "is_train": True} for name in "ab"]
        ask(server, "POST", "/api/rollouts", named)
        while (page := ask(server, "GET", "/api/rollouts/terminal")[1])["next_after"] < 2:
            time.sleep(0.01)
        self.assertEqual([(one["rollout_id"], one["state"], one["data_id"]) for one in page["items"]], [("a", "succeeded", "d"), ("b", "failed", "d")])
        self.assertEqual(ask(server, "GET", "/api/rollouts/terminal?after=2")[1], {"items": [], "next_after": 2, "total_terminal": 2})

    def test_where_nobody_has_a_number_or_a_row_is_of_another_temperature_all_have_failed_and_why(self) -> None:
        cases = [(None, {}, "NoNumber"), (encoder.simple([1.0, 0.0]), {"temperature": 0.7}, "Refused: temperature")]
        for given, more, why in cases:
            _, server = self.server(given, **more)
            found = collected(server, [{"input": "one"}] * 2)
            self.assertEqual([(one.state, one.triplets, one.reward) for one in found], [("failed", [], None)] * 2)
            self.assertTrue(all((one.error or "").startswith(why) for one in found), found)

    def test_what_would_train_something_else_is_refused_by_name(self) -> None:
        _, server = self.server(encoder.simple([1.0, 0.0]))
        one = {"input": "one", "rollout_id": "a", "is_train": True}
        for asked, why in (([one], "groups of 2"), ([{**one, "is_train": False}] * 2, "evaluation")):
            status, said = ask(server, "POST", "/api/rollouts", asked)
            self.assertEqual(status, 422)
            self.assertIn(why, said["detail"])
        ask(server, "POST", "/api/rollouts", [one, {**one, "rollout_id": "b"}])
        path = "/api/rollouts/a/attempt/0/events"
        self.assertEqual(ask(server, "POST", path, {"event_type": "reward", "data": {"value": 0.0}})[0], 409)
        self.assertEqual(ask(server, "POST", path, {"event_type": "note", "data": {"text": "x"}})[1]["data"], {"text": "x"})
        self.assertEqual(ask(server, "POST", "/proxy/pause", {})[0], 501)
        self.assertEqual(ask(server, "GET", "/api/nothing")[0], 404)
        self.assertEqual(ask(server, "PATCH", "/api/rollouts/a", {})[0], 405)

    def test_its_key_is_asked_for_and_needed_beyond_this_machine(self) -> None:
        _, server = self.server(encoder.simple([1.0, 0.0]), key="secret")
        self.assertEqual(ask(server, "DELETE", "/api/models")[0], 401)
        self.assertEqual(ask(server, "DELETE", "/api/models", key="secret")[0], 200)
        self.assertEqual(ask(server, "GET", "/healthz")[0], 200)
        with self.assertRaisesRegex(Refused, "key"):
            Server(server.groups, 2, host="0.0.0.0")


if __name__ == "__main__":
    unittest.main()
