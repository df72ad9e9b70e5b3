import gzip
import os
import socket
import threading
import unittest
from unittest import mock

from paddock_rl import CursorGone, Fenced, Full, Gated, Malformed, Paddock, Rejected, Unanswered, Unreachable
from paddock_rl.http import Transport

from .stand_in import StandIn, refuses, says


class Asking(unittest.TestCase):
    def setUp(self) -> None:
        self.server = StandIn()
        self.addCleanup(self.server.close)
        self.paddock = Paddock(self.server.url, "secret")

    def test_sends_its_token_and_reads_gzip(self) -> None:
        self.server.on("GET /x", says(gzip.compress(b'{"a": 1}'), **{"content-encoding": "gzip"}))
        self.assertEqual(self.paddock.ask("GET", "/x"), {"a": 1})
        self.assertEqual(self.server.asked[0].headers["authorization"], "Bearer secret")

    def test_asks_for_plain_bytes_on_one_machine_only(self) -> None:
        self.server.on("GET /x", says({}))
        self.paddock.ask("GET", "/x")
        near = self.server.asked[0].headers["accept-encoding"]
        far = Transport("http://paddock.example:1", "secret")._encoding
        self.assertEqual((near, far), ("identity", "gzip"))

    def test_a_lost_answer_is_asked_for_again_where_that_is_harmless(self) -> None:
        self.server.on("POST /x", lambda asked: asked.drop(), lambda asked: asked.drop(), says({"done": True}))
        self.assertEqual(self.paddock.ask("POST", "/x", {"n": 1}, repeatable=True), {"done": True})
        self.assertEqual(self.server.bodies("POST /x"), [{"n": 1}] * 3)

    def test_and_only_there(self) -> None:
        self.server.on("POST /x", lambda asked: asked.drop(), says({}))
        with self.assertRaises(Unanswered):
            self.paddock.ask("POST", "/x", {"n": 1})
        self.assertEqual(len(self.server.asked), 1)

    def test_half_an_answer_is_none(self) -> None:
        half = says(b'{"a":', **{"content-length": "8"})
        self.server.on("GET /x", lambda asked: setattr(asked.handler, "close_connection", True) or half, says({"a": 1}))
        self.assertEqual(self.paddock.ask("GET", "/x"), {"a": 1})

    def test_what_never_arrived_is_sent_again(self) -> None:
        with socket.socket() as later:
            later.bind(("127.0.0.1", 0))
            paddock = Paddock(f"http://127.0.0.1:{later.getsockname()[1]}", "t", patience_s=60)
            found: list[object] = []
            asking = threading.Thread(target=lambda: found.append(paddock.ask("POST", "/x", {})))
            asking.start()
            later.listen()
            connection, _ = later.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            asking.join()
        self.assertEqual(found, [{}])

    def test_nobody_there_is_said(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            paddock = Paddock(f"http://127.0.0.1:{closed.getsockname()[1]}", "t", patience_s=0)
            with self.assertRaisesRegex(Unreachable, "paddock serve"):
                paddock.ask("GET", "/x")

    def test_a_paddock_that_starts_again_is_waited_for(self) -> None:
        self.server.on("POST /x", refuses(503, "STARTING"), says({"ok": 1}))
        with self.assertRaises(Rejected):
            self.paddock.ask("POST", "/x", {})
        self.server.on("POST /x", refuses(503, "STARTING"), says({"ok": 1}))
        self.assertEqual(self.paddock.ask("POST", "/x", {}, repeatable=True), {"ok": 1})

    def test_refusals_have_types(self) -> None:
        self.server.on("GET /fenced", refuses(409, "FENCED"))
        self.server.on("GET /gate", refuses(409, "GATE", blocking=["g1", {"group_id": "g2"}]))
        self.server.on("GET /full", refuses(429, "FULL", headers={"retry-after": "3"}, accepted=[{"group_id": "a"}], refused=["b"]))
        self.server.on("GET /gone", refuses(410, "CURSOR_GONE", cursor="run:1:9"))
        self.server.on("GET /bad", says({"error": {"code": "BAD_REQUEST", "message": "n is 0.", "fix": "Take 1."}}, 400))
        self.server.on("GET /html", says(b"<html>", 502))
        with self.assertRaises(Fenced):
            self.paddock.ask("GET", "/fenced")
        with self.assertRaises(Gated) as gated:
            self.paddock.ask("GET", "/gate")
        self.assertEqual(gated.exception.blocking, ["g1", "g2"])
        with self.assertRaises(Full) as full:
            self.paddock.ask("GET", "/full")
        self.assertEqual((full.exception.retry_after_s, full.exception.refused), (3.0, ["b"]))
        with self.assertRaises(CursorGone) as gone:
            self.paddock.ask("GET", "/gone")
        self.assertEqual(gone.exception.cursor, "run:1:9")
        with self.assertRaisesRegex(Rejected, "400 BAD_REQUEST: n is 0. Fix: Take 1."):
            self.paddock.ask("GET", "/bad")
        with self.assertRaisesRegex(Rejected, "502"):
            self.paddock.ask("GET", "/html")

    def test_an_answer_that_is_no_json_object_is_named(self) -> None:
        self.server.on("GET /x", says(b"[1]"))
        with self.assertRaises(Malformed):
            self.paddock.ask("GET", "/x")

    def test_numbers_that_json_has_not_are_not_sent(self) -> None:
        with self.assertRaises(ValueError):
            self.paddock.ask("POST", "/x", {"value": float("nan")})
        self.assertEqual(self.server.asked, [])

    def test_the_token_may_come_from_the_environment(self) -> None:
        self.server.on("GET /x", says({}))
        with mock.patch.dict(os.environ, {"PADDOCK_CONTROL_TOKEN": "from outside"}):
            Paddock(self.server.url).ask("GET", "/x")
        self.assertEqual(self.server.asked[0].headers["authorization"], "Bearer from outside")
        with mock.patch.dict(os.environ, clear=True), self.assertRaisesRegex(ValueError, "PADDOCK_CONTROL_TOKEN"):
            Paddock(self.server.url)
        with self.assertRaisesRegex(ValueError, "address"):
            Paddock("127.0.0.1:8791", "t")
