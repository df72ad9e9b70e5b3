"""Samples that a trainer asks for one by one, and of whose steps it says nothing: what `openrlhf` and `nemo_gym` have in common."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from . import groups as grouped
from .convert._rows import Null, Several, trained_runs
from .rows import Group, Row

__all__ = ["Samples"]


class Samples:
    """`n` samples that are asked for by one name are a group, and so are the next `n`; all of them have to be under way at once. `open` is called in a thread when the first is asked for."""

    def __init__(self, open: Callable[[], grouped.Groups], n: int) -> None:
        if n < 1:
            raise grouped.Refused("number", "n is 1 or more.")
        self._open = open
        self._n = n
        self._groups: grouped.Groups | None = None
        self._opening = asyncio.Lock()
        self._begun: Counter[Hashable] = Counter()

    async def one(
        self, name: Hashable, prompt: Any, *, null: Null, several: Several, temperature: float | None, longest: int | None = None
    ) -> tuple[list[grouped.Place], int, Group | None]:
        """The places of its group, which of them it is, and the group. Rows are `used` from then on, at step 0. `longest`: tokens that the trainer allows an answer; one that has more is `Refused`."""
        number = self._begun[name]
        self._begun[name] += 1
        async with self._opening:
            if self._groups is None:
                self._groups = await asyncio.to_thread(self._attached)
        group = await self._groups.member((name, number // self._n), grouped.Asked(prompt, self._n), 0)
        found = grouped.places(group, self._n, several, temperature)
        for row in [row for place in found if not place.masked for row in place.rows]:
            _check_length(row, longest)
        if null == "raise":
            grouped.require_numbers(found)
        place = number % self._n
        if place == 0 and group is not None:
            await asyncio.to_thread(_told, self._groups, group, found)
        return found, place, group

    def close(self) -> None:
        """Ends its threads."""
        if self._groups is not None:
            self._groups.close()

    def _attached(self) -> grouped.Groups:
        groups = self._open()
        if not groups.run.attached:
            groups.run.attach()
        return groups


def _check_length(row: Row, longest: int | None) -> None:
    sampled = max((end - start for start, end in trained_runs(row)), default=0)
    if longest is not None and sampled > longest:
        raise grouped.Refused(
            "sampling", f"row {row.row_id} has an answer of {sampled} tokens, and the trainer allows {longest}. Fix: bound it where rollouts are sampled, in the run's harness or `session.clamp`."
        )


def _told(groups: grouped.Groups, group: Group, found: list[grouped.Place]) -> None:
    """What becomes of a group's rows."""
    given = {row.row_id for place in found if not place.masked for row in place.rows}
    said: list[dict[str, Any]] = []
    for row in group.rows:
        if row.row_id in given:
            said.append({"row": row.row_id, "step": 0, "outcome": "used", "reward_used": row.reward})
        else:
            said.append({"row": row.row_id, "step": 0, "outcome": "skipped", "reason": row.unusable_reason or "not given to the trainer"})
    groups.run.dispose(said)
