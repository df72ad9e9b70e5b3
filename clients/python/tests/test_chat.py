"""The chat route in front of an engine that takes ids: what it gives the engine, what it answers, what it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
import unittest
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

from paddock_rl.chat import Chat


class Tokenizer:
    def __len__(self) -> int:
        return 100

    def apply_chat_template(self, messages: Any, **_: Any) -> list[int]:
        return [len(each["content"]) for each in messages] + [99]

    def decode(self, ids: Any, **_: Any) -> str:
        return "-".join(map(str, ids))


class ChatTest(unittest.TestCase):
    def setUp(self) -> None:
        self.asked: list[tuple[list[int], Any]] = []
        self.loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self.loop.run_forever)
        thread.start()
        params = SimpleNamespace(temperature=1.0, top_p=0.5, max_tokens=None, logprobs=None)
        self.params = params
        self.chat = Chat(self.loop, self, Tokenizer(), params, 10)

        def close() -> None:
            self.chat.close()
            self.loop.call_soon_threadsafe(self.loop.stop)
            thread.join()
            self.loop.close()

        self.addCleanup(close)

    async def generate(self, ids: list[int], params: Any) -> Any:
        self.asked.append((ids, params))
        told = [{7: SimpleNamespace(logprob=-0.5)}, {8: SimpleNamespace(logprob=-0.25)}]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=(7, 8), logprobs=told, finish_reason="stop")])

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.chat.url + path, data)) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def test_ids_of_prompt_and_answer_and_their_logprobs_are_the_engines(self) -> None:
        status, found = self.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "four"}], "temperature": 0.75, "max_tokens": 3})
        choice = found["choices"][0]
        self.assertEqual((status, found["prompt_token_ids"], choice["token_ids"], choice["message"]["content"]), (200, [4, 99], [7, 8], "7-8"))
        self.assertEqual([each["logprob"] for each in choice["logprobs"]["content"]], [-0.5, -0.25])
        ((ids, params),) = self.asked
        self.assertEqual((ids, params.temperature, params.top_p, params.max_tokens, params.logprobs), ([4, 99], 0.75, 1.0, 3, 1))
        # The trainer's own are as they were.
        self.assertEqual((self.params.temperature, self.params.top_p), (1.0, 0.5))

    def test_an_answer_has_the_room_that_is_left_and_none_is_an_overflow(self) -> None:
        self.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "four"}]})
        self.assertEqual(self.asked[0][1].max_tokens, 8)
        status, found = self.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}] * 9})
        self.assertEqual((status, len(self.asked)), (400, 1))
        self.assertIn("maximum context length is 10 tokens", found["error"]["message"])

    def test_what_it_cannot_do_is_refused_and_not_left_out(self) -> None:
        for more, word in (({"tools": [{}]}, "tool"), ({"stream": True}, "stream")):
            status, found = self.ask("/v1/chat/completions", {"messages": [], **more})
            self.assertEqual(status, 400)
            self.assertIn(word, found["error"]["message"])
        self.assertEqual(self.ask("/v1/completions", {})[0], 404)
        self.assertEqual(self.ask("/v1/models")[1]["data"][0]["max_model_len"], 10)
        self.assertEqual(self.asked, [])


if __name__ == "__main__":
    unittest.main()
