"""Fakes for the tests of your program: they keep jobs in memory, and run handlers on a clock of their own.

They show what your code enqueues and what your handlers make of it. They know no limits, orders or leases.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Awaitable, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._held import AsyncClaimedJob, ClaimedJob, outcome
from ._jobs import Enqueued, Job, Receipt, Refused, duration, job_body, new_id
from .errors import ApiError, CancelledError, JobFailed

__all__ = ["FakeAsyncClient", "FakeClient", "FakeJob"]

_UNFINISHED = ("queued", "claimed")
_FOREVER = datetime.max.replace(tzinfo=timezone.utc)


@dataclass
class FakeJob:
    """A job of a FakeClient."""

    id: str
    queue: str
    payload: Any
    #: the options of enqueue
    options: Mapping[str, Any]
    due_at: datetime
    state: str = "queued"
    attempts: int = 0
    error: str = ""
    result: Any = None
    checkpoint: Any = None
    #: the reports of progress
    progress: List[Any] = field(default_factory=list)
    _made_at: datetime = field(default=datetime.min, repr=False, compare=False)
    _begun: bool = field(default=False, repr=False, compare=False)
    #: the job with the same key that must end first
    _behind: Optional["FakeJob"] = field(default=None, repr=False, compare=False)


class FakeClient:
    """Takes the place of a Client in tests. ``now`` is its clock; run moves it on to the next job that is due."""

    def __init__(self, *, now: Optional[datetime] = None, max_attempts: int = 25, backoff: float = 2.0) -> None:
        self.now = now or datetime(2026, 1, 1, tzinfo=timezone.utc)
        #: all jobs, in the order in which they were enqueued
        self.jobs: List[FakeJob] = []
        #: by queue and key: the job that has the key, and until when; None: until the job has ended
        self._keys: Dict[Tuple[str, str], Tuple[FakeJob, Optional[datetime]]] = {}
        self._max_attempts, self._backoff = max_attempts, backoff

    def __enter__(self) -> "FakeClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        pass

    def enqueue(self, queue: str, payload: Any, *, id: Optional[str] = None, **options: Any) -> Receipt:
        body = job_body(queue, payload, id, options)
        payload = json.loads(json.dumps(payload, allow_nan=False))  # as a handler gets it
        due = options.get("due_at") or self.now + _delta(options.get("delay") or 0)
        made = FakeJob(body["id"], queue, payload, dict(options), due, _made_at=self.now)
        if any(job.id == made.id for job in self.jobs):
            return Receipt(made.id, duplicate=True)
        receipt = self._take_key(made) if options.get("key") else Receipt(made.id)
        if not receipt.duplicate:
            self.jobs.append(made)
        return receipt

    def _take_key(self, made: FakeJob) -> Receipt:
        """Gives a new job its key, or merges it into the job that has the key."""
        options, replaced, begins = made.options, None, self.now
        rule, scope, window = options.get("on_duplicate") or "keep", options.get("key_scope"), _delta(options.get("key_window") or 0)
        first, until = self._holder_of_key(made)
        if first is not None:
            if rule != "keep" and (first.options.get("tenant") or "") != (options.get("tenant") or ""):
                raise _key_of_other(options["key"], rule)
            throttles = rule == "coalesce" and scope == "window" and until != _FOREVER
            merges = rule in ("coalesce", "debounce") and until is None or throttles
            if rule == "replace" and first.state == "queued":
                first.state, replaced, made._behind = "cancelled", first.id, first._behind
            elif merges and first.state == "queued" and not first._begun:
                if rule == "debounce":
                    first.due_at = min(made.due_at, first._made_at + window) if window else made.due_at
                expires = options.get("expires_at")
                expires = expires if expires is None or expires > first.due_at else first.options.get("expires_at")
                first.payload, first.options = made.payload, {**first.options, "labels": options.get("labels"), "expires_at": expires}
                return Receipt(first.id, duplicate=True)
            elif merges and until is None:
                made._behind = first
            elif merges and until is not None:
                begins = made.due_at = until
            else:
                return Receipt(first.id, duplicate=True)
        ends = {"window": begins + window, "forever": _FOREVER}.get(scope or "unfinished")
        self._keys[made.queue, options["key"]] = made, ends
        return Receipt(made.id, replaced=replaced)

    def _holder_of_key(self, made: FakeJob) -> Tuple[Optional[FakeJob], Optional[datetime]]:
        """Returns the job whose key refuses another, and until when it does."""
        job, until = self._keys.get((made.queue, made.options["key"]), (None, None))
        if until is not None:
            return (job, until) if until > self.now else (None, None)
        while job is not None and job.state not in _UNFINISHED:
            job = job._behind  # it has its key again
        return job, None

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any]]) -> Enqueued:
        out = Enqueued()
        for place, job in enumerate(jobs):
            rest = {name: value for name, value in job.items() if name not in ("queue", "payload", "id")}
            id = job.get("id") or new_id()
            try:
                duplicate = self.enqueue(job["queue"], job.get("payload"), id=id, **rest).duplicate
            except ApiError as error:
                out.refused.append(Refused(place, id, error))
                continue
            out.duplicates += duplicate
            out.stored += not duplicate
        return out

    def job(self, id: str) -> Job:
        job = self._find(id)
        return Job(
            job.id, job.queue, job.state, job.payload, error=job.error, result=job.result, attempts=job.attempts, checkpoint=job.checkpoint,
            tenant=job.options.get("tenant") or "", key=job.options.get("key") or "", labels=job.options.get("labels") or {},
        )  # fmt: skip

    def cancel(self, ids: Union[str, Sequence[str]], reason: str = "", *, by: str = "") -> int:
        found = [self._find(id) for id in ([ids] if isinstance(ids, str) else ids)]
        unfinished = [job for job in found if job.state in _UNFINISHED]
        for job in unfinished:
            job.state = "cancelled"
        return len(unfinished)

    def result(self, id: str, *, timeout: Optional[float] = None) -> Any:
        """Returns the result of a job that run has ended."""
        job = self._find(id)
        if job.state in _UNFINISHED:
            raise TimeoutError(f"job {id} has not ended; call run first")
        if job.state != "completed":
            raise JobFailed(id, job.state, job.error)
        return job.result

    def run(self, handler: Callable[[Any], Any], queue: Optional[str] = None, *, most: int = 10_000) -> int:
        """Runs the handler, or a coroutine function, on all waiting jobs until none is left. It returns the attempts.

        A coroutine function gets AsyncClaimedJobs, any other ClaimedJobs.
        The clock moves on to the next due job, so that two days of retries take no time.
        """
        attempts, kind = 0, AsyncClaimedJob if inspect.iscoroutinefunction(handler) else ClaimedJob
        for job in self._claims(queue, most):
            attempts += 1
            result, failure = None, None
            try:
                result = handler(self._claimed(job, kind))
                if inspect.isawaitable(result):
                    result = asyncio.run(_await(result))
            except Exception as error:
                failure = error
            self._end(job, result, failure)
        return attempts

    def _claims(self, queue: Optional[str], most: int) -> Iterator[FakeJob]:
        """Moves the clock on to each job that is due, and claims it."""
        for _ in range(most):
            waiting = [job for job in self.jobs if job.state == "queued" and queue in (None, job.queue) and not _blocked(job)]
            if not waiting:
                return
            job = min(waiting, key=lambda job: job.due_at)
            self.now = max(self.now, job.due_at)
            job.state, job._begun = "claimed", True
            yield job
        raise AssertionError(f"jobs are left after {most} attempts")

    def _claimed(self, job: FakeJob, kind: Callable[..., Any]) -> Any:
        return kind(**{**self.job(job.id).__dict__, "attempt": job.attempts + 1, "_sink": _Sink(job)})

    def _end(self, job: FakeJob, result: Any, failure: Optional[BaseException]) -> None:
        if job.state == "claimed":  # it was not cancelled meanwhile
            self._settle(job, outcome(result, failure))

    def _settle(self, job: FakeJob, end: Mapping[str, Any]) -> None:
        delay = timedelta(microseconds=int(end["delay"][:-2])) if "delay" in end else None
        if end["outcome"] == "complete":
            job.state, job.result = "completed", end.get("result")
            return
        job.state = "queued"
        if end["outcome"] == "fail":
            job.attempts, job.error = job.attempts + 1, end["error"]
            if end.get("permanent") or job.attempts >= (job.options.get("max_attempts") or self._max_attempts):
                job.state = "dead"
                return
            delay = delay if delay is not None else timedelta(seconds=self._backoff * 2 ** min(job.attempts - 1, 15))
        job.due_at = self.now + (delay or timedelta())

    def _find(self, id: str) -> FakeJob:
        for job in self.jobs:
            if job.id == id:
                return job
        raise ApiError(404, {"code": "not_found", "why": "there is no such job", "do": "list what there is"})


class FakeAsyncClient:
    """Takes the place of an AsyncClient in tests: a FakeClient whose methods are coroutines."""

    def __init__(self, *, now: Optional[datetime] = None, max_attempts: int = 25, backoff: float = 2.0) -> None:
        self._fake = FakeClient(now=now, max_attempts=max_attempts, backoff=backoff)

    async def __aenter__(self) -> "FakeAsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def now(self) -> datetime:
        """The clock."""
        return self._fake.now

    @property
    def jobs(self) -> List[FakeJob]:
        """All jobs, in the order in which they were enqueued."""
        return self._fake.jobs

    async def close(self) -> None:
        pass

    async def enqueue(self, queue: str, payload: Any, *, id: Optional[str] = None, **options: Any) -> Receipt:
        return self._fake.enqueue(queue, payload, id=id, **options)

    async def enqueue_many(self, jobs: Iterable[Mapping[str, Any]]) -> Enqueued:
        return self._fake.enqueue_many(jobs)

    async def job(self, id: str) -> Job:
        return self._fake.job(id)

    async def cancel(self, ids: Union[str, Sequence[str]], reason: str = "", *, by: str = "") -> int:
        return self._fake.cancel(ids, reason, by=by)

    async def result(self, id: str, *, timeout: Optional[float] = None) -> Any:
        """Returns the result of a job that run has ended."""
        return self._fake.result(id, timeout=timeout)

    async def run(self, handler: Callable[[AsyncClaimedJob], Awaitable[Any]], queue: Optional[str] = None, *, most: int = 10_000) -> int:
        """Runs the handler on all waiting jobs until none is left. See FakeClient.run."""
        attempts = 0
        for job in self._fake._claims(queue, most):
            attempts += 1
            result, failure = None, None
            try:
                result = await handler(self._fake._claimed(job, AsyncClaimedJob))
            except Exception as error:
                failure = error
            self._fake._end(job, result, failure)
        return attempts


class _Sink:
    def __init__(self, job: FakeJob) -> None:
        self._job = job

    @property
    def reason(self) -> Optional[Exception]:
        return CancelledError(f"job {self._job.id} was cancelled") if self._job.state == "cancelled" else None

    def progress(self, fraction: float, message: str) -> None:
        self._job.progress.append((fraction, message))

    def save_checkpoint(self, value: Any) -> None:
        self._job.checkpoint = json.loads(json.dumps(value, allow_nan=False))


def _key_of_other(key: str, rule: str) -> ApiError:
    why = f"a job of another tenant holds {json.dumps(key)}, and {rule} would change it"
    do = "begin the key with the name of the tenant, or set on_duplicate to keep"
    return ApiError(422, {"code": "invalid", "what": "enqueue a job", "why": why, "do": do})


def _blocked(job: FakeJob) -> bool:
    return job._behind is not None and job._behind.state in _UNFINISHED


def _delta(value: Any) -> timedelta:
    return timedelta(microseconds=int(duration(value)[:-2]))


async def _await(result: Any) -> Any:
    return await result
