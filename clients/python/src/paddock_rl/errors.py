"""What can go wrong, by type. Everything that this package raises about Paddock is a `PaddockError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class PaddockError(Exception):
    """The root of all errors of this package."""


class Unreachable(PaddockError):
    """No connection was made, so nothing was asked. Is `paddock serve` running at this address?"""


class Unanswered(PaddockError):
    """A request left and no whole answer came: Paddock may have done it or not. Only requests that may be repeated are repeated."""


class Malformed(PaddockError):
    """An answer that is not what the protocol says."""


class Rejected(PaddockError):
    """Paddock said no.

    `status` is the HTTP status, `code` the code of docs/reference/errors.md, `body` the whole answer.
    """

    def __init__(self, status: int, code: str, message: str, body: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.body = body


class FeedStopped(PaddockError):
    """The run's feed asks for nothing more, and nothing of it is under way. `reason`: `groups_failed` (one after the other) or
    `selector_failed`. Put right what `message` says, and attach again: the feed goes on then.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"the feed has stopped ({reason}): {message}. Fix: put it right, and attach again.")
        self.reason = reason
        self.message = message


class GroupsFailed(PaddockError):
    """Nothing of the run is under way any more, and groups have failed since the last time this was said. `reasons` has, for each failed group
    among the newest ten that this process asked for, why its members have no number. Put it right, ask for groups again, then call `groups()` again.
    """

    def __init__(self, failed: int, reasons: Mapping[str, Sequence[str]]) -> None:
        told = "; ".join(f"{group}: {', '.join(why) or 'no member began'}" for group, why in reasons.items())
        super().__init__(f"{failed} groups of the run have failed and none is under way. {told}. Fix: put it right, and submit groups again.")
        self.failed = failed
        self.reasons = reasons


class Fenced(Rejected):
    """Another process has attached to the run since: this one no longer speaks for it and has to stop."""


class Gated(Rejected):
    """The new version has to wait: groups under way would become older than the run's `staleness.max`.

    `blocking` names them; wait until they are done, or cancel them by name.
    """

    @property
    def blocking(self) -> Sequence[str]:
        found = self.body.get("blocking") or _data(self.body).get("blocking") or []
        return [str(item.get("group_id")) if isinstance(item, Mapping) else str(item) for item in found]


class Evaluating(Rejected):
    """The new version has to wait: evaluations run on the weights that are live. `evals` names them."""

    @property
    def evals(self) -> Sequence[str]:
        return [str(item) for item in _data(self.body).get("evals") or []]


class Full(Rejected):
    """There is no room for more groups now. `refused` names those that were not taken; ask again after `retry_after_s`."""

    def __init__(self, status: int, code: str, message: str, body: Mapping[str, Any], retry_after_s: float) -> None:
        super().__init__(status, code, message, body)
        self.retry_after_s = retry_after_s

    @property
    def accepted(self) -> Sequence[Mapping[str, Any]]:
        return list(self.body.get("accepted") or _data(self.body).get("accepted") or [])

    @property
    def refused(self) -> Sequence[str]:
        return [str(group) for group in self.body.get("refused") or _data(self.body).get("refused") or []]


class CursorGone(Rejected):
    """Events behind this cursor are no longer kept. `body` holds the snapshot to start from and its `cursor`."""

    @property
    def cursor(self) -> str | None:
        found = self.body.get("cursor") or _data(self.body).get("cursor")
        return None if found is None else str(found)


class ClaimLost(PaddockError):
    """The lease of a claim ran out before its rows were fetched: somebody else has, or will have, this group."""


def _data(body: Mapping[str, Any]) -> Mapping[str, Any]:
    error = body.get("error")
    data = error.get("data") if isinstance(error, Mapping) else None
    return data if isinstance(data, Mapping) else {}
