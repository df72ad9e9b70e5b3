"""TRL's own loop over a task that Paddock serves: `python openenv_white_box.py URL MODEL`, the task and what solves it as JSON on standard input. The model is random, so what it
samples is laid down here: every other rollout does what solves the task, the rest give up. All else is TRL's: templates, parsing, tools, rewards, advantages, the step.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/train"))

import torch  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from transformers.utils import logging  # noqa: E402
from white_box_trl import sql_tasks  # noqa: E402

logging.disable_progress_bar()
url, place = sys.argv[1:3]
asked = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(place)
model = AutoModelForCausalLM.from_pretrained(place)
# TRL parses the calls of templates that it knows, word for word.
tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()


def said(prompt: str, lazy: bool) -> str:
    """What the policy samples behind this prompt."""
    turns = prompt.count("<tool_response>")
    if lazy:
        return "I give up."
    if turns == len(asked["calls"]):
        return "I have handed it in."
    call = asked["calls"][turns]
    return "<tool_call>\n" + json.dumps({"name": call["tool_name"], "arguments": call["arguments"]}) + "\n</tool_call>"


def generate(input_ids: Any, **_: Any) -> Any:
    # Those that gave up are asked once, so whoever is asked again is not one of them.
    rows = [tokenizer.decode(row) for row in input_ids]
    texts = [said(row, "<tool_response>" not in row and at % 2 == 1) for at, row in enumerate(rows)]
    ids = [tokenizer.encode(text) + [tokenizer.eos_token_id] for text in texts]
    width = max(map(len, ids))
    return torch.cat([input_ids, torch.tensor([[*row, *[tokenizer.pad_token_id] * (width - len(row))] for row in ids])], dim=1)


model.generate = generate
before = model.model.layers[0].mlp.up_proj.weight.detach().clone()
with tempfile.TemporaryDirectory() as directory:
    config = trl.GRPOConfig(
        directory, max_steps=1, per_device_train_batch_size=2, num_generations=2, max_completion_length=2048, use_cpu=True, learning_rate=1e-3,
        report_to=[], logging_steps=1, save_strategy="no", disable_tqdm=True, bf16=False,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": ""}], "task": asked["task"]}] * 2)
    trainer = trl.GRPOTrainer(model, args=config, train_dataset=rows, processing_class=tokenizer, environment_factory=sql_tasks(url))
    trainer.train()
logs = trainer.state.log_history[0]
moved = not torch.equal(before, model.model.layers[0].mlp.up_proj.weight)
names = ["rewards/Sql/mean", "rewards/Sql/std", "tools/call_frequency", "tools/failure_frequency"]
print(json.dumps({"moved": moved, **{name: logs.get(name) for name in names}}))
