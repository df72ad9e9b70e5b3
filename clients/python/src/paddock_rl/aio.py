"""`AsyncPaddock` and `AsyncRun`: the same calls for asyncio. Each runs its synchronous twin in a thread of a pool of its own, so that
there is one meaning; a task that is cancelled closes its connection, and its thread ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar

from .advantages import Advantages
from .client import Attached, Bounds, Disposed, Event, MemoryKey, Outcome, Paddock, Phase, Run, Submitted, UpdateMode
from .http import Abort, current_abort
from .rows import Group

T = TypeVar("T")


class AsyncPaddock:
    """`Paddock` for asyncio. `max_waiting` calls may be under way at once, long polls included."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        patience_s: float = 60.0,
        tls: ssl.SSLContext | None = None,
        max_waiting: int = 32,
    ) -> None:
        self.sync = Paddock(url, token, timeout_s=timeout_s, patience_s=patience_s, tls=tls)
        self._threads = ThreadPoolExecutor(max_waiting, thread_name_prefix="paddock")

    async def __aenter__(self) -> AsyncPaddock:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def off(self, ask: Callable[[], T], dropped: Callable[[T], object] | None = None) -> T:
        """Runs one synchronous call. Cancelled, it is aborted; what it had come to all the same goes to `dropped`."""
        abort = Abort()
        context = contextvars.copy_context()
        context.run(current_abort.set, abort)
        running = asyncio.get_running_loop().run_in_executor(self._threads, context.run, ask)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            abort.abort()
            await asyncio.wait([running])
            if running.exception() is None and dropped is not None:
                dropped(running.result())
            raise

    async def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        wait_s: float = 0.0,
    ) -> dict[str, Any]:
        return await self.off(lambda: self.sync.ask(method, path, body, repeatable=repeatable, wait_s=wait_s))

    async def run(self, run_id: str | None = None, **asked: Any) -> AsyncRun:
        return AsyncRun(self, await self.off(lambda: self.sync.run(run_id, **asked)))

    async def open_run(self, run_id: str) -> AsyncRun:
        return AsyncRun(self, await self.off(lambda: self.sync.open_run(run_id)))

    async def rows(self, group_id: str, round: int = 0, *, policy: str | None = None, spans: bool = False) -> Group:
        return await self.off(lambda: self.sync.rows(group_id, round, policy=policy, spans=spans))

    async def tasks(
        self,
        *,
        run: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
        tasks: Iterable[str] | None = None,
        versions: Bounds | None = None,
        pass_rate: Bounds | None = None,
        attempts: Bounds | None = None,
        uses: Bounds | None = None,
        unused_since: str | None = None,
        by: Iterable[MemoryKey] = (),
        sort: Literal["pass_rate", "attempts", "uses", "last"] = "pass_rate",
        descending: bool = False,
        page: int = 500,
    ) -> list[dict[str, Any]]:
        ask = partial(
            self.sync.tasks,
            run=run,
            harness=harness,
            variant=variant,
            tasks=tasks,
            versions=versions,
            pass_rate=pass_rate,
            attempts=attempts,
            uses=uses,
            unused_since=unused_since,
            by=by,
            sort=sort,
            descending=descending,
            page=page,
        )
        return await self.off(ask)

    async def open_round(self, group_id: str, **asked: Any) -> dict[str, Any]:
        return await self.off(lambda: self.sync.open_round(group_id, **asked))

    async def cancel_group(self, group_id: str) -> dict[str, Any]:
        return await self.off(lambda: self.sync.cancel_group(group_id))

    async def cancel_rollout(self, rollout_id: str, *, reason: str | None = None) -> dict[str, Any]:
        return await self.off(lambda: self.sync.cancel_rollout(rollout_id, reason=reason))

    async def shelve(self, rollout_id: str, reason: str | None = None) -> dict[str, Any]:
        return await self.off(lambda: self.sync.shelve(rollout_id, reason))

    async def resume(self, rollout_id: str) -> dict[str, Any]:
        return await self.off(lambda: self.sync.resume(rollout_id))

    async def score(self, sequences: Iterable[Sequence[int]], *, if_version: str | None = None, role: str = "policy") -> dict[str, Any]:
        return await self.off(lambda: self.sync.score(sequences, if_version=if_version, role=role))

    async def tree(self, rollout_id: str) -> dict[str, Any]:
        return await self.off(lambda: self.sync.tree(rollout_id))

    async def open_rollout(self, group_id: str, *, idempotency_key: str | None = None, **asked: Any) -> dict[str, Any]:
        return await self.off(lambda: self.sync.open_rollout(group_id, idempotency_key=idempotency_key, **asked))

    async def rollout(self, rollout_id: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        return await self.off(lambda: self.sync.rollout(rollout_id, wait_s=wait_s))

    async def end_rollout(self, rollout_id: str, end: str = "completed", **more: Any) -> dict[str, Any]:
        return await self.off(lambda: self.sync.end_rollout(rollout_id, end, **more))

    async def verdict(self, rollout_id: str, source: str, reward: float | None, **more: Any) -> dict[str, Any]:
        return await self.off(lambda: self.sync.verdict(rollout_id, source, reward, **more))

    async def rewrite(
        self, rollout_id: str, rewrites: Sequence[Mapping[str, Any]], *, name: str = "rewrite", wait_s: float = 3600.0
    ) -> dict[str, Any]:
        return await self.off(lambda: self.sync.rewrite(rollout_id, rewrites, name=name, wait_s=wait_s))

    async def verify(
        self,
        key: str,
        task: str,
        *,
        run_id: str | None = None,
        files: Mapping[str, bytes | str] | None = None,
        archive: bytes | None = None,
        answer: str | None = None,
        wait_s: float = 3600.0,
    ) -> dict[str, Any]:
        return await self.off(
            lambda: self.sync.verify(key, task, run_id=run_id, files=files, archive=archive, answer=answer, wait_s=wait_s)
        )

    async def verification(self, key: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        return await self.off(lambda: self.sync.verification(key, wait_s=wait_s))


class AsyncRun:
    """`Run` for asyncio."""

    def __init__(self, paddock: AsyncPaddock, run: Run) -> None:
        self.paddock = paddock
        self.sync = run
        self.run_id = run.run_id
        self.opened = run.opened
        self._off = paddock.off

    @property
    def incarnation(self) -> int:
        return self.sync.incarnation

    async def attach(self, resume_step: int | None = None, *, consumer: str | None = None) -> Attached:
        return await self._off(lambda: self.sync.attach(resume_step, consumer=consumer))

    def join(self, incarnation: int) -> None:
        self.sync.join(incarnation)

    async def checkpoint(self, step: int) -> None:
        await self._off(lambda: self.sync.checkpoint(step))

    async def shelve(self, reason: str | None = None) -> dict[str, Any]:
        return await self._off(lambda: self.sync.shelve(reason))

    async def resume(self) -> dict[str, Any]:
        return await self._off(self.sync.resume)

    async def probe(
        self,
        call_id: str,
        k: int,
        max_tokens: int,
        *,
        temperature: float = 1.0,
        answer: Mapping[str, Any] | None = None,
        suffix: str | Sequence[int] | None = None,
        verifier: Mapping[str, Any] | None = None,
        wait_s: float = 600.0,
    ) -> dict[str, Any]:
        more: dict[str, Any] = {"temperature": temperature, "answer": answer, "suffix": suffix, "verifier": verifier}
        return await self._off(lambda: self.sync.probe(call_id, k, max_tokens, **more, wait_s=wait_s))

    async def state(self) -> dict[str, Any]:
        return await self._off(self.sync.state)

    async def submit(self, groups: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, wait_s: float = 0.0) -> Submitted:
        return await self._off(lambda: self.sync.submit(groups, wait_s=wait_s))

    async def fork(self, rollout_id: str, call: str | int, n: int, *, group_id: str | None = None, **asked: Any) -> str:
        return await self._off(lambda: self.sync.fork(rollout_id, call, n, group_id=group_id, **asked))

    async def claim(
        self,
        max_groups: int = 1,
        *,
        policy: str | None = None,
        wait_s: float = 30.0,
        lease_s: float = 300.0,
        consumer: str = "trainer",
        spans: bool = False,
    ) -> list[Group]:
        said: dict[str, Any] = {"policy": policy, "wait_s": wait_s, "lease_s": lease_s, "consumer": consumer, "spans": spans}
        return await self._off(lambda: self.sync.claim(max_groups, **said), self.sync._forget)

    async def groups(
        self,
        limit: int | None = None,
        *,
        policy: str | None = None,
        max_groups: int = 1,
        lease_s: float = 300.0,
        consumer: str = "trainer",
        spans: bool = False,
    ) -> AsyncIterator[Group]:
        taken = 0
        while limit is None or taken < limit:
            most = max_groups if limit is None else min(max_groups, limit - taken)
            found = await self._off(
                partial(self.sync._claim_more, most, lease_s, consumer, spans, policy), lambda late: self.sync._forget(late or [])
            )
            if found is None:
                return
            taken += len(found)
            for group in found:
                yield group

    async def give_back(self, group: Group) -> None:
        await self._off(lambda: self.sync.give_back(group))

    async def dispose(self, dispositions: Iterable[Mapping[str, Any]]) -> Disposed:
        return await self._off(lambda: self.sync.dispose(dispositions))

    async def dispose_group(
        self,
        group: Group,
        step: int,
        outcome: Outcome | None = None,
        *,
        computed: Advantages | None = None,
        left_out: Mapping[str, Outcome] | None = None,
        reason: str | None = None,
    ) -> Disposed:
        return await self._off(
            lambda: self.sync.dispose_group(group, step, outcome, computed=computed, left_out=left_out, reason=reason)
        )

    async def policy(
        self,
        version: int,
        phase: Phase,
        *,
        step: int | None | Literal["unsaid"] = "unsaid",
        policy: str | None = None,
        mode: UpdateMode = "drain",
        label: str | None = None,
        requests: Sequence[Mapping[str, Any]] = (),
        adapter: Mapping[str, str] | None = None,
        wait_s: float = 600.0,
    ) -> dict[str, Any]:
        said: dict[str, Any] = {"step": step, "policy": policy, "mode": mode, "label": label, "requests": requests, "adapter": adapter}
        said["wait_s"] = wait_s
        return await self._off(lambda: self.sync.policy(version, phase, **said))

    async def engines(self, engines: Iterable[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
        return await self._off(lambda: self.sync.engines(engines))

    async def metrics(self, step: int, values: Mapping[str, float], *, mismatch: Mapping[str, float] | None = None) -> None:
        await self._off(lambda: self.sync.metrics(step, values, mismatch=mismatch))

    async def recorded_metrics(self, after_step: int | None = None) -> dict[str, Any]:
        return await self._off(lambda: self.sync.recorded_metrics(after_step))

    async def events(self, after: str | None = None) -> AsyncIterator[Event]:
        while True:
            found, after = await self.poll_events(after)
            for event in found:
                yield event

    async def poll_events(self, after: str | None = None, *, wait_s: float = 30.0) -> tuple[list[Event], str | None]:
        return await self._off(lambda: self.sync.poll_events(after, wait_s=wait_s))

    async def eval(
        self,
        tasks: Sequence[Any] | None = None,
        *,
        split: str | None = None,
        k: int = 1,
        eval_id: str | None = None,
        **asked: Any,
    ) -> dict[str, Any]:
        return await self._off(lambda: self.sync.eval(tasks, split=split, k=k, eval_id=eval_id, **asked))

    async def eval_state(self, eval_id: str, *, wait_s: float = 0.0) -> dict[str, Any]:
        return await self._off(lambda: self.sync.eval_state(eval_id, wait_s=wait_s))

    async def eval_result(self, eval_id: str) -> dict[str, Any]:
        return await self._off(lambda: self.sync.eval_result(eval_id))

    async def cancel_eval(self, eval_id: str) -> dict[str, Any]:
        return await self._off(lambda: self.sync.cancel_eval(eval_id))

    async def finish(self) -> None:
        await self._off(self.sync.finish)

    async def close(self) -> None:
        await self._off(self.sync.close)

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
