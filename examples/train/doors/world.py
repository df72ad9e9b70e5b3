"""The task `doors`: a clue, four doors, and a rule that nobody tells. Standard library only.

The right door hangs on the colour of the clue alone. Behind each door stands a number, new for every rollout; whoever opens a door
and repeats its number has done what was asked, and is right where the door was. Opening doors at random is right once in four, and
there is nothing to guess: a number has three digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DOORS = ("north", "east", "south", "west")
COLOURS = ("red", "blue", "green", "white", "black", "brown", "grey", "gold")
ANIMALS = (
    "ant bat bear bee cat cow crab crow deer dog duck eel fish fly fox frog goat hare hawk hen horse lion mole moth mouse owl pig "
    "rat seal snake wolf yak"
).split()


@dataclass(frozen=True)
class Clue:
    colour: str
    animal: str

    @property
    def name(self) -> str:
        return f"{self.colour}-{self.animal}"

    @property
    def instruction(self) -> str:
        return f"The clue is {self.colour} {self.animal} . Open one door : north , east , south or west ."

    @property
    def right_door(self) -> str:
        at = COLOURS.index(self.colour)
        return DOORS[(3 * at + at // 4) % 4]

    @property
    def held_out(self) -> bool:
        """Half of the clues are never trained; each colour has as many of them."""
        return (COLOURS.index(self.colour) + ANIMALS.index(self.animal)) % 2 == 1


def clues() -> list[Clue]:
    return [Clue(colour, animal) for colour in COLOURS for animal in ANIMALS]


def training(seed: int) -> list[Clue]:
    """The clues that train, shuffled; any four in a row from the first, fifth, ninth ... on have four right doors."""
    random = Random(seed)
    by_door = {door: [clue for clue in clues() if not clue.held_out and clue.right_door == door] for door in DOORS}
    for of_door in by_door.values():
        random.shuffle(of_door)
    return [clue for round_ in zip(*by_door.values(), strict=True) for clue in round_]


def held_out() -> list[Clue]:
    return [clue for clue in clues() if clue.held_out]


def behind_doors(random: Random) -> dict[str, str]:
    """A number of three digits, none twice in it, for each door, no two alike."""
    numbers = [number for number in (f"{number:03d}" for number in range(1000)) if len(set(number)) == 3]
    return dict(zip(DOORS, random.sample(numbers, len(DOORS)), strict=True))


def found(number: str) -> str:
    """What is told of an open door."""
    return f"Behind the door stands {number} . Say it ."
