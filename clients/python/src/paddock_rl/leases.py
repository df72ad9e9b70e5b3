"""Keeps claims alive while their rows are trained on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .errors import PaddockError, Rejected


@dataclass
class _Lease:
    lease_s: float
    due: float


class Leases:
    """One thread renews all that is held, each at a third of its lease. It is a daemon: a process that ends holds nothing."""

    def __init__(self, renew: Callable[[str, float], None]) -> None:
        self._renew = renew
        self._held: dict[str, _Lease] = {}
        self._lost: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def hold(self, claim_id: str, lease_s: float) -> None:
        with self._changed:
            if self._closed:
                raise RuntimeError("this run was closed here")
            self._held[claim_id] = _Lease(lease_s, time.monotonic() + lease_s / 3)
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="paddock-leases", daemon=True)
                self._thread.start()
            self._changed.notify()

    def let_go(self, claim_id: str) -> None:
        with self._changed:
            self._held.pop(claim_id, None)

    def lost(self, claim_id: str) -> bool:
        """Whether Paddock has refused to renew it."""
        with self._changed:
            return claim_id in self._lost

    def close(self) -> list[str]:
        """Ends the thread. What was still held is returned."""
        with self._changed:
            self._closed = True
            held = list(self._held)
            self._held.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        return held

    def _next(self) -> tuple[str, float] | None:
        """The claim that is due, once one is. None: it is over."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                due = min(self._held.items(), key=lambda item: item[1].due, default=None)
                if due is None:
                    self._changed.wait()
                elif due[1].due > now:
                    self._changed.wait(due[1].due - now)
                else:
                    due[1].due = now + due[1].lease_s / 3
                    return due[0], due[1].lease_s
            return None

    def _keep(self) -> None:
        while (due := self._next()) is not None:
            claim_id, lease_s = due
            try:
                self._renew(claim_id, lease_s)
            except Rejected:
                with self._changed:
                    if self._held.pop(claim_id, None) is not None:
                        self._lost.add(claim_id)
            except PaddockError:
                # Unreachable for now; it is due again in a third of its lease.
                continue
