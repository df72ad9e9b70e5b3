"""Makes the model that `doors` starts from: `tiny.py DIRECTORY`. Two minutes on two cores.

A Llama of about two million parameters with a tokenizer of its own. It is taught to speak, not to choose: in its lessons every door is
as likely as any other, whatever the clue. It says the colour of the clue before it opens one.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from world import ANIMALS, COLOURS, DOORS, Clue, behind_doors, found

SPECIAL = ["<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|> {{ message.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
REPEATS, LESSONS, BATCH, RATE = 120, 200, 48, 2e-3

Conversation = list[dict[str, str]]


def lesson(random: Random) -> Conversation:
    """What the model shall be able to say."""
    clue, opened = Clue(random.choice(COLOURS), random.choice(ANIMALS)), random.choice(DOORS)
    number = behind_doors(random)[opened]
    return [
        {"role": "user", "content": clue.instruction},
        {"role": "assistant", "content": f"{clue.colour} {opened}"},
        {"role": "user", "content": found(number)},
        {"role": "assistant", "content": number},
    ]


def new_tokenizer() -> PreTrainedTokenizerFast:
    random = Random(0)
    words = (f" {message['content']}" for _ in range(4000) for message in lesson(random))
    tokenizer = Tokenizer(models.BPE())
    # Digits stand alone, so that any number is three tokens.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\d| ?[^\s\d]+| "), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(words, trainers.BpeTrainer(vocab_size=512, special_tokens=SPECIAL, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|end|>", chat_template=TEMPLATE, clean_up_tokenization_spaces=False
    )


def new_model(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    shape = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 6}
    special = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    more = {"head_dim": 32, "max_position_embeddings": 512, "tie_word_embeddings": True, "dtype": "float32"}
    return LlamaForCausalLM(LlamaConfig(vocab_size=512, **shape, **special, **more)).to(torch.float32)


def untied(model: Any) -> Any:
    """The same model with output embeddings of its own: vLLM 0.32.0 leaves tied ones as they were when it reloads weights."""
    config = LlamaConfig.from_dict({**model.config.to_dict(), "tie_word_embeddings": False})
    free = LlamaForCausalLM(config).to(torch.float32)
    free.load_state_dict(model.state_dict())
    return free


def encoded(tokenizer: Any, conversation: Conversation) -> tuple[list[int], list[int]]:
    """Ids, and for each whether the model says it."""
    ids: list[int] = []
    said: list[int] = []
    for message in conversation:
        words = tokenizer.encode(f" {message['content']}") + [tokenizer.eos_token_id]
        ids += [tokenizer.convert_tokens_to_ids(f"<|{message['role']}|>"), *words]
        said += [0, *([int(message["role"] == "assistant")] * len(words))]
    return ids, said


def teach(model: Any, tokenizer: Any) -> None:
    """First to repeat what it was shown, then the lessons, down to a loss of 0.15: what cannot be known is the door, one of nine tokens."""
    random = Random(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    falling = lambda at: min(1.0, (at + 1) / 30, 0.05 + (REPEATS + LESSONS - at) / LESSONS)  # noqa: E731
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, falling)
    for at in range(REPEATS + LESSONS):
        made = [repeat(random) if at < REPEATS else encoded(tokenizer, lesson(random)) for _ in range(BATCH)]
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids, _ in made], batch_first=True)
        said = torch.nn.utils.rnn.pad_sequence([torch.tensor(said) for _, said in made], batch_first=True)
        logits = model(input_ids=ids).logits[:, :-1]
        wanted = torch.where(said[:, 1:] > 0, ids[:, 1:], torch.tensor(-100))
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if at % 50 == 49:
            print(f"batch {at + 1} of {REPEATS + LESSONS}: loss {loss.item():.3f}", file=sys.stderr, flush=True)


def repeat(random: Random) -> tuple[list[int], list[int]]:
    """Any ten tokens, and the same ten once more, which can be known."""
    ids = [random.randrange(len(SPECIAL), 512) for _ in range(10)]
    return [*ids, *ids], [*([0] * 11), *([1] * 9)]


def content_hash() -> str:
    """Of what the weights are made from."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in ("world.py", "tiny.py"))).hexdigest()[:12]


def make(directory: Path) -> Path:
    """The directory of the model, made where it is not there yet; it appears whole or not at all."""
    made = directory / f"doors-{content_hash()}"
    if not made.exists():
        directory.mkdir(parents=True, exist_ok=True)
        tokenizer = new_tokenizer()
        model = new_model(tokenizer)
        teach(model, tokenizer)
        work = Path(tempfile.mkdtemp(dir=directory))
        untied(model).save_pretrained(work)
        tokenizer.save_pretrained(work)
        work.chmod(0o755)
        work.rename(made)
    return made


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
