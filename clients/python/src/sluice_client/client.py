"""The client: it enqueues jobs, waits for their results, and works."""

from __future__ import annotations

import os
import random
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

from ._engine import Engine
from ._held import ClaimedJob, Held
from ._jobs import Enqueued, Job, Receipt, Refused, job_body, names, new_id
from ._signals import on_signals
from ._transport import PASSES, Abort, Transport
from .errors import ApiError, EnqueueManyError, JobFailed

Handler = Callable[[ClaimedJob], Any]

_CHUNK, _CHUNK_BYTES = 1000, 4 << 20
_LONG_POLL = 30.0


class _Part:
    """Jobs of enqueue_many that go in one request."""

    def __init__(self, first: int) -> None:
        self.first = first  # the place of its first job among all
        self.bodies: List[Dict[str, Any]] = []
        self.size = 0
        self.made: Set[str] = set()  # the IDs that the client made
        self.sent: List[str] = []  # the IDs, once they were sent
        self.answered = 0  # how many of its first jobs have an answer

    def add(self, job: Mapping[str, Any]) -> None:
        rest = {name: value for name, value in job.items() if name not in ("queue", "payload", "id")}
        body = job_body(job["queue"], job.get("payload"), job.get("id"), rest)
        if not job.get("id"):
            self.made.add(body["id"])
        self.bodies.append(body)
        self.size += len(str(body["payload"]))


def _is_duplicate(found: Mapping[str, Any], id: str, *, made: bool) -> bool:
    """A job that is there under an ID that the client made was stored by an earlier request of its own."""
    return bool(found.get("duplicate")) and not (made and found["id"] == id)


class Client:
    """A connection to a Sluice server. It may be used by many threads.

    ``url`` is the address of `sluice serve`; default: $SLUICE_URL, or http://127.0.0.1:7400. ``token`` is the secret
    of `sluice tokens create`; default: $SLUICE_TOKEN. ``timeout`` is the longest time of a call, in seconds, retries
    included. ``ssl_context`` trusts a private authority, and shows a certificate in place of a token.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 30.0,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.url = url or os.environ.get("SLUICE_URL") or "http://127.0.0.1:7400"
        self._timeout = timeout
        self._transport = Transport(self.url, token or os.environ.get("SLUICE_TOKEN"), ssl_context)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections."""
        self._transport.close()

    def enqueue(self, queue: str, payload: Any, *, id: Optional[str] = None, **options: Any) -> Receipt:
        """Stores a job, and returns when it is stored.

        If an answer is lost, the job is sent again, and stored once, because the client names it. ``id`` names it
        yourself. The options are those of `sluice enqueue`: tenant, key, key_scope, key_window, on_duplicate, due_at,
        delay, priority, expires_at, labels, max_attempts, timeout, order_key, limit_key, cost, after, after_failure, after_failures,
        batch, hold. Durations are seconds or a timedelta, instants a datetime with a time zone.
        """
        body = job_body(queue, payload, id, options)
        answer = self._transport.request("POST", "/jobs", body, timeout=self._timeout)
        return Receipt(answer["id"], _is_duplicate(answer, body["id"], made=id is None), answer.get("replaced"))

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any]]) -> Enqueued:
        """Stores jobs in parts, with little memory. Each job is a dict of queue, payload and the options of enqueue.

        It says of each refused job why. If it ends early, it raises EnqueueManyError, which says how far it came.
        """
        out, part = Enqueued(), _Part(0)
        try:
            for job in jobs:
                part.add(job)
                if len(part.bodies) >= _CHUNK or part.size >= _CHUNK_BYTES:
                    self._send_part(part, out)
                    part = _Part(part.first + len(part.bodies))
            if part.bodies:
                self._send_part(part, out)
        except Exception as error:
            raise EnqueueManyError(out, part.first + part.answered, part.sent[part.answered :], error) from error
        return out

    def _send_part(self, part: _Part, out: Enqueued) -> None:
        part.sent = [body["id"] for body in part.bodies]
        self._send_bodies(part, 0, len(part.bodies), out)

    def _send_bodies(self, part: _Part, first: int, end: int, out: Enqueued) -> None:
        try:
            results = self._results(part.bodies[first:end])
        except ApiError as error:
            if error.status != 413:  # the server, or a proxy, reads less at once
                raise
            middle = (first + end) // 2
            if middle > first:
                self._send_bodies(part, first, middle, out)
                self._send_bodies(part, middle, end, out)
            else:
                out.refused.append(Refused(part.first + first, part.sent[first], error))
                part.answered = end
            return
        for i, found in enumerate(results, first):
            id = part.sent[i]
            if "error" in found:
                out.refused.append(Refused(part.first + i, id, ApiError(found["error"].get("status", 0), found["error"])))
            elif _is_duplicate(found, id, made=id in part.made):
                out.duplicates += 1
            else:
                out.stored += 1
        part.answered = end

    def _results(self, bodies: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Stores jobs, and sends those again that the server cannot take yet. It raises an error that leaves open whether a job is stored."""
        until, pause = time.monotonic() + self._timeout, 0.05
        results: Dict[int, Dict[str, Any]] = {}
        left: List[int] = list(range(len(bodies)))
        while True:
            answer = self._transport.request("POST", "/jobs", [bodies[i] for i in left], timeout=until - time.monotonic())["results"]
            results.update(zip(left, answer))
            left = [i for i in left if results[i].get("error", {}).get("status") in PASSES]
            errors = [results[i]["error"] for i in left]
            rest = max((error.get("retry_after_seconds", 0) for error in errors), default=0)
            rest = max(rest, pause) * (0.5 + random.random())
            if not left or time.monotonic() + rest >= until:
                break
            time.sleep(rest)
            pause = min(pause * 2, 2)
        for error in errors:
            if error.get("code") != "full":
                raise ApiError(error["status"], error)
        return [results[i] for i in range(len(bodies))]

    def job(self, id: str) -> Job:
        """Returns a job. It raises ApiError with code not_found if there is none."""
        return Job.of(self._transport.request("GET", "/jobs/" + urllib.parse.quote(id, safe=""), timeout=self._timeout))

    def cancel(self, ids: Union[str, Sequence[str]], reason: str = "", *, by: str = "") -> int:
        """Cancels unfinished jobs; their handlers are told. It returns how many were cancelled."""
        body = {"ids": [ids] if isinstance(ids, str) else list(ids), "reason": reason}
        headers = {"Idempotency-Key": new_id()}
        if by:
            headers["Sluice-By"] = by
        return self._transport.request("POST", "/jobs/cancel", body, timeout=self._timeout, headers=headers)["done"]

    def result(self, id: str, *, timeout: Optional[float] = None) -> Any:
        """Waits for the end of a job, and returns its result.

        It raises JobFailed if the job is dead or cancelled, and TimeoutError after timeout seconds. None: no timeout.
        """
        return self._result(id, timeout, None)

    def _result(self, id: str, timeout: Optional[float], abort: Optional[Abort]) -> Any:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            wait = _LONG_POLL if until is None else min(_LONG_POLL, max(until - time.monotonic(), 0))
            path = f"/jobs/{urllib.parse.quote(id, safe='')}/end?wait={int(wait * 1000)}ms"
            end = self._transport.request("GET", path, timeout=self._timeout, wait=wait, abort=abort)
            if end["ended"]:
                if end["state"] == "completed":
                    return end.get("result")
                raise JobFailed(id, end["state"], end.get("error", ""))
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"job {id} had not ended after {timeout} s; it is {end['state']}")

    def work(
        self,
        queues: Union[str, Sequence[str]],
        handler: Handler,
        *,
        concurrency: int = 10,
        lease: Optional[float] = None,
        stop: Optional[threading.Event] = None,
        drain_timeout: float = 30.0,
        worker: Optional[str] = None,
        version: str = "",
    ) -> None:
        """Claims jobs of the queues, and calls the handler for each in a thread, until ``stop`` is set.

        Its return value is the result of the job. An exception fails the attempt; PermanentError, RetryError and
        SnoozeError say how the job goes on. ``lease`` is how many seconds a dead worker keeps a job; default: the
        queue's setting. In the main thread, SIGTERM and SIGINT set ``stop``, and a second one ends the program. The
        worker then waits drain_timeout seconds for its handlers, and tells them to end after that.
        """
        end = stop or threading.Event()

        def start(held: Held) -> None:
            threading.Thread(target=run, args=(held,), name="sluice-" + held.job.id, daemon=True).start()

        def run(held: Held) -> None:
            result, failure = None, None
            try:
                result = handler(held.job)
            except BaseException as error:  # the outcome says it
                failure = error
            engine.finish(held, result, failure)

        engine = Engine(
            self._transport, names(queues), start,
            concurrency=concurrency, lease=lease, worker=worker, version=version, drain_timeout=drain_timeout,
        )  # fmt: skip
        watch = threading.Thread(target=lambda: (end.wait(), engine.stop()), name="sluice-stop", daemon=True)
        watch.start()
        leave = on_signals(end.set, always=True)
        try:
            engine.run()
        finally:
            leave()
            end.set()
