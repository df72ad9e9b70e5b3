"""The trainer's side of Paddock: claim settled groups of rollouts, train on exactly what was sampled, say what became of it.

    from paddock_rl import Paddock, advantages

    with Paddock("http://127.0.0.1:8791", token).run(purpose="train", harness="reference", tasks="/tasks") as run:
        run.attach()
        run.submit({"task": "sum", "n": 8})
        for step, group in enumerate(run.groups(limit=100)):
            found = advantages(group, "grpo")
            ...
            run.dispose_group(group, step, computed=found)

Standard library only. Null is never 0: a rollout without a number has no advantage, and converters refuse what cannot be said.
"""

from .advantages import PRESETS, Advantages, OutcomeStopped, Preset, RowAdvantage, advantages, row_scales
from .aio import AsyncPaddock, AsyncRun
from .client import Attached, Disposed, Event, Outcome, Paddock, Run, Submitted, Turn
from .convert import (
    MultiRow,
    NoNumber,
    to_areal,
    to_nemo,
    to_openrlhf,
    to_skyrl,
    to_slime,
    to_tinker,
    to_trl,
    to_trl_async,
    to_verifiers,
    to_verl,
)
from .errors import (
    ClaimLost,
    CursorGone,
    Evaluating,
    FeedStopped,
    Fenced,
    Full,
    Gated,
    GroupsFailed,
    Malformed,
    PaddockError,
    Rejected,
    Unanswered,
    Unreachable,
)
from .mismatch import Bound, Mismatch, MismatchTooLarge, check_mismatch
from .rows import MEDIA_TYPE, Group, Member, Node, Row, decode

__version__ = "0.1.0"

__all__ = [
    "MEDIA_TYPE",
    "PRESETS",
    "Advantages",
    "AsyncPaddock",
    "AsyncRun",
    "Attached",
    "Bound",
    "ClaimLost",
    "CursorGone",
    "Disposed",
    "Evaluating",
    "FeedStopped",
    "Event",
    "Fenced",
    "Full",
    "Gated",
    "Group",
    "GroupsFailed",
    "Malformed",
    "Member",
    "Mismatch",
    "MismatchTooLarge",
    "MultiRow",
    "NoNumber",
    "Node",
    "Outcome",
    "OutcomeStopped",
    "Paddock",
    "PaddockError",
    "Preset",
    "Rejected",
    "Row",
    "RowAdvantage",
    "Run",
    "Submitted",
    "Turn",
    "Unanswered",
    "Unreachable",
    "advantages",
    "check_mismatch",
    "decode",
    "row_scales",
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
