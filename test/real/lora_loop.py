"""`examples/train/loop.py --lora` against a real vLLM: `lora_loop.py MODEL SAVE`, beside a Paddock of an engine that serves MODEL.

The harness is one question; a reward is the share of vowels in its answer, so that there is a signal and nothing to get right. Before
each update the loop compares recorded logprobs with its own: they are of the adapter that was live, or it stops.
"""

import argparse
import json
import os
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import torch
from paddock_rl import Paddock
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/train"))

import loop  # noqa: E402
import lora  # noqa: E402

TASK = {"name": "vowels", "instruction": "Say something with many vowels in it."}


def play(paddock: Paddock, group: str) -> None:
    opened = paddock.open_rollout(group)
    body = {"model": "policy", "messages": [{"role": "user", "content": TASK["instruction"]}], "max_tokens": 16, "ignore_eos": True}
    headers = {"authorization": f"Bearer {opened['key']}", "content-type": "application/json"}
    asked = urllib.request.Request(f"{opened['base_url']}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        text = json.load(answer)["choices"][0]["message"]["content"] or ""
    reward = sum(letter in "aeiou" for letter in text.lower()) / max(len(text), 1)
    paddock.end_rollout(opened["rollout_id"], verdict={"source": "test", "reward": reward})


def policy(seed: int) -> Any:
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
    lora.put_on(model, 4)
    return model


def main() -> None:
    torch.set_num_threads(2)
    args = argparse.Namespace(save=sys.argv[2], groups=1, n=4, lag=0, save_every=1, most_tokens=2048, lora=4, mode="drain", lease_s=60.0)
    vars(args).update(lr=0.05, decay=0.0, clip_low=0.2, clip_high=0.28, max_norm=1.0, most_kl=1e-3, kl=0.0, reference=None)
    paddock = Paddock(os.environ["PADDOCK_CONTROL_URL"])
    with paddock.run("lora-loop", purpose="train", groups_per_step=1, staleness={"max": 0, "mode": "gate"}) as run:

        def ask(name: str, number: int) -> None:
            run.submit({"group_id": name, "task": TASK, "n": args.n})
            for _ in range(args.n):
                threading.Thread(target=play, args=(paddock, name), daemon=True).start()

        # The second goes on from the checkpoint of the first, as a trainer does that was killed behind it.
        for seed, steps in enumerate((2, 4)):
            args.steps = steps
            loop.train(policy(seed), run, ask, args)
        print(json.dumps({"metrics": run.recorded_metrics()["metrics"], "policy": run.state()["policy"]}))
        run.finish()


main()
