"""SmolLM2-135M learns `repeat`: `learn.py --base DIRECTORY --weights DIRECTORY --out FILE`, as `doors` does (../doors/learn.py).

Two words are shown, and these two are to be said and nothing else. The model comes as it is published: at temperature 1 it does so about
once in three times, and goes on, explains or forgets otherwise. Its chat template drops tools, so the harness has none. Words of held-out
tasks are in no task that trains. Of its 30 layers the last few train.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "doors"))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402
from learn import Subject, main  # noqa: E402
from play import run_harness  # noqa: E402

HARNESS = ["node", Path(__file__).resolve().parents[2] / "harness/one-answer.mjs"]
WORDS = (
    "bear bee cat crow dog fish fly fox hen horse lion monkey mouse owl pig rat snake wolf worm bed bell boat book box bridge brush bus "
    "cap car chair clock cloud coat coin cup door flag floor gate glass hat house key leaf letter nail paper pen pipe plate pot river road "
    "sand ship shirt sock stone street table tower train wall wheel wire"
).split()
HELD_OUT = 128


@dataclass(frozen=True)
class Words:
    both: tuple[str, str]

    @property
    def name(self) -> str:
        return "-".join(self.both)

    @property
    def instruction(self) -> str:
        return " ".join(self.both)


def pairs(words: list[str], random: Random) -> list[Words]:
    """Each word with each other, shuffled."""
    made = [Words((one, two)) for one in words for two in words if one != two]
    random.shuffle(made)
    return made


def training(seed: int) -> list[Words]:
    """Of three words in five."""
    return pairs([word for at, word in enumerate(WORDS) if at % 5 < 3], Random(seed))


def held_out() -> list[Words]:
    """Of the other words."""
    return pairs([word for at, word in enumerate(WORDS) if at % 5 >= 3], Random(0))[:HELD_OUT]


def say(words: Words, _random: Random, opened: dict[str, Any]) -> float:
    """Whether the two words were said, and nothing else."""
    return float(run_harness(HARNESS, words.instruction, opened) == words.instruction)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    main(
        Subject("repeat", training, held_out, say, at_once=16),
        steps=25,
        n=4,
        top_layers=6,
        lr=1e-4,
        decay=0.5,
        kl=0.0,
        max_norm=1.0,
        save_every=1000,
    )
