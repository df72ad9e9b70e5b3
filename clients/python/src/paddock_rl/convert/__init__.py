"""Slices of rows in the shapes that trainers take: plain lists and dicts, no framework imported.

Each module says in a table who groups, who computes advantages, how null is said, and how several rows of one rollout are said.
"""

from ._rows import MultiRow, NoNumber, Null, Several
from .areal import to_areal
from .nemo import to_nemo
from .openrlhf import to_openrlhf
from .skyrl import to_skyrl
from .slime import to_slime
from .tinker import to_tinker
from .trl import to_trl, to_trl_async
from .verifiers import to_verifiers
from .verl import to_verl

__all__ = [
    "MultiRow",
    "NoNumber",
    "Null",
    "Several",
    "to_areal",
    "to_nemo",
    "to_openrlhf",
    "to_skyrl",
    "to_slime",
    "to_tinker",
    "to_trl",
    "to_trl_async",
    "to_verifiers",
    "to_verl",
]
