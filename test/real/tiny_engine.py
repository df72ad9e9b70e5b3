"""An engine of a few lines: a Llama of 2 layers in this process, behind the routes of vLLM that Paddock records.

It samples from the whole vocabulary and tells logprobs of the model itself, and it notes every call.
A token is a word: text and ids are one to one, so a conversation that is sent back has the ids that it had.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, EOS, USER, ASSISTANT, TOOL = range(5)
WORDS = ["<pad>", "<eos>", "<user>", "<assistant>", "<tool>", *(f"w{index}" for index in range(5, 32))]
_IDS = {word: index for index, word in enumerate(WORDS)}
_ROLES = {"system": USER, "user": USER, "assistant": ASSISTANT, "tool": TOOL}


def new_model() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=EOS,
    )
    return LlamaForCausalLM(config)


def new_tokenizer() -> Any:
    words = Tokenizer(WordLevel(_IDS, unk_token="<pad>"))
    words.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def logprobs_of(model: Any, ids: list[int]) -> Any:
    """The logprob of each token but the first, by one forward pass."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(-1, torch.tensor(ids[1:]).unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class Call:
    """What one request was answered with."""

    user: str
    temperature: float
    prompt_ids: list[int]
    token_ids: list[int]
    logprobs: list[float]


class TinyEngine:
    def __init__(self, most_tokens: int = 5) -> None:
        self.model = new_model().eval()
        self.calls: list[Call] = []
        self.name = "0"
        self._most = most_tokens
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                with suppress(ConnectionError):
                    super().handle()

            def do_GET(self) -> None:
                self.answer(None)

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                self.answer(json.loads(raw) if raw else {})

            def answer(self, body: Any) -> None:
                found = outer.take(self.path.split("?")[0], body)
                content = json.dumps({"error": "no such route"} if found is None else found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def load(self, weights: dict[str, Any]) -> None:
        with self._lock:
            self.model.load_state_dict(weights)

    def take(self, path: str, body: Any) -> Any:
        match path:
            case "/v1/models":
                return {"data": [{"id": "tiny", "max_model_len": 128}]}
            case "/version":
                return {"version": "0.32.0"}
            case "/server_info":
                return {"vllm_config": {"logprobs_mode": "raw_logprobs", "generation_config": "vllm", "vocab_size": len(WORDS)}}
            case "/weight_info":
                return {"weight_version": self.name}
            case "/update_weight_version":
                self.name = body["new_version"]
                return {}
            case "/health" | "/pause" | "/resume" | "/reset_prefix_cache" | "/abort_requests":
                return {}
            case "/v1/chat/completions":
                return self.chat(body)
        return None

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt: list[int] = []
        for message in body["messages"]:
            words = [_IDS.get(word, PAD) for word in message["content"].split()]
            prompt += [_ROLES[message["role"]], *words, EOS]
        prompt.append(ASSISTANT)
        with self._lock:
            temperature = body.get("temperature", 1)
            token_ids, logprobs = self.sample(prompt, temperature)
            self.calls.append(Call(body.get("user", ""), temperature, prompt, token_ids, logprobs))
        ended = token_ids[-1] == EOS
        text = " ".join(WORDS[token] for token in (token_ids[:-1] if ended else token_ids))
        told = [{"token": WORDS[token], "logprob": value} for token, value in zip(token_ids, logprobs, strict=True)]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop" if ended else "length",
            "logprobs": {"content": told},
            "token_ids": token_ids,
        }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(token_ids), "total_tokens": len(prompt) + len(token_ids)}
        about = {"id": f"chatcmpl-{len(self.calls)}", "object": "chat.completion", "created": 0, "model": "tiny"}
        return {**about, "choices": [choice], "usage": usage, "prompt_token_ids": prompt}

    def sample(self, prompt: list[int], temperature: float) -> tuple[list[int], list[float]]:
        ids = list(prompt)
        logprobs: list[float] = []
        while len(logprobs) < self._most and (not logprobs or ids[-1] != EOS):
            with torch.no_grad():
                logits = self.model(torch.tensor([ids])).logits[0, -1].float()
            spread = logits.log_softmax(-1)
            token = int(torch.multinomial((logits / temperature).softmax(-1), 1) if temperature > 0 else logits.argmax())
            ids.append(token)
            logprobs.append(float(spread[token]))
        return ids[len(prompt) :], logprobs

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
