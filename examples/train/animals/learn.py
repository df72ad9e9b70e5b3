"""SmolLM2-135M learns `animals`: `learn.py --base DIRECTORY --weights DIRECTORY --out FILE`, as `doors` does (../doors/learn.py).

`axe or cow?` is asked, and the animal is to be said, as one word and nothing else. The model comes as it is published: at temperature 1
it names the animal about as often as the other word, and says something else half of the time. Its chat template drops tools, so the
harness has none. Words of held-out tasks are in no task that trains. Of its 30 layers the last few train.
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
ANIMALS = (
    "bear bee cat cow crab crow deer dog duck eagle fish fly fox frog goat hawk hen horse lion mole monkey moth mouse owl pig pony "
    "rabbit rat seal shark sheep snake swan tiger toad trout turtle whale wolf worm"
).split()
THINGS = (
    "axe bed bell boat book bowl box brick bridge broom brush bus candle cap car chair clock cloud coat coin cup desk door dress drum "
    "fence flag floor fork gate glass glove hammer hat house key knife ladder lamp leaf letter mirror nail needle paper pen pipe plate "
    "pot river road roof rope sand saw scarf ship shirt shoe shovel soap sock spoon stone stool street sword table tent tower train "
    "truck wall wheel wire"
).split()
HELD_OUT = 128


@dataclass(frozen=True)
class Question:
    words: tuple[str, str]
    animal: str

    @property
    def name(self) -> str:
        return "-".join(self.words)

    @property
    def instruction(self) -> str:
        return f"{self.words[0]} or {self.words[1]}?"


def questions(animals: list[str], things: list[str], random: Random) -> list[Question]:
    """Each animal with each thing, shuffled; either may come first."""
    pairs = [(animal, thing) for animal in animals for thing in things]
    random.shuffle(pairs)
    return [Question((a, t) if random.random() < 0.5 else (t, a), a) for a, t in pairs]


def training(seed: int) -> list[Question]:
    """Of three words in five."""
    return questions([w for at, w in enumerate(ANIMALS) if at % 5 < 3], [w for at, w in enumerate(THINGS) if at % 5 < 3], Random(seed))


def held_out() -> list[Question]:
    """Of the other words."""
    others = [[word for at, word in enumerate(words) if at % 5 >= 3] for words in (ANIMALS, THINGS)]
    return questions(*others, Random(0))[:HELD_OUT]


def say(question: Question, _random: Random, opened: dict[str, Any]) -> float:
    """Whether the animal was said, and nothing else."""
    return float(run_harness(HARNESS, question.instruction, opened) == question.animal)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    main(
        Subject("animals", training, held_out, say, at_once=16),
        steps=40,
        n=4,
        top_layers=6,
        lr=5e-5,
        decay=0.5,
        kl=0.0,
        max_norm=1.0,
        save_every=1000,
    )
