"""The part of a worker that talks with the server: it claims, renews, reports and settles, in threads of its own.

Handlers run elsewhere: start is called for each claimed job, and whoever runs the handler calls finish.
"""

from __future__ import annotations

import json
import logging
import math
import os
import queue as queues_
import secrets
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Set

from ._held import Draining, Held
from ._jobs import duration
from ._transport import BROKEN, PASSES, Abort, Transport
from .errors import ApiError, CancelledError, CertificateRefused, ConnectionFailed, LostError, TimedOutError, TooDeep

log = logging.getLogger("sluice_client")

_WAIT = 30.0  # how long the server keeps a claim
_SLACK = 10.0
_MOST, _BYTES = 500, 4 << 20  # jobs and bytes of one request
_REFUSES = (413, 422)  # the request breaks a rule, perhaps by a single job
_STATE = 409  # the state of the queue forbids the claim, such as an engine that runs its jobs; people may change it
_HEARTBEAT = 10.0
_GRACE = 10.0  # how long a handler may go on after its timeout
_LAST = 5.0  # how long a handler has after it was told to end
_SOON = 1.0
_SINGLY = 3600.0  # how long a worker claims one job at a time after an answer that it could not read
_BACK = 5.0  # how long the worker tries to give a claim back


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"[-100:]


class Engine:
    def __init__(
        self,
        transport: Transport,
        queues: List[str],
        start: Callable[[Held], None],
        *,
        concurrency: int,
        lease: Optional[float],
        worker: Optional[str],
        version: str,
        drain_timeout: float,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if lease is not None and not 1 <= lease <= 86400:
            raise ValueError("lease must be from 1 second to 24 hours")
        self._transport, self._queues, self._start = transport, queues, start
        self._concurrency, self._lease, self._drain_timeout = concurrency, lease, drain_timeout
        self._worker, self._version = worker or worker_name(), version
        self._changed = threading.Condition()
        self._held: Set[Held] = set()
        self._busy = 0  # handlers that run
        self._mode = "working"
        self._outcomes: "queues_.SimpleQueue[Optional[tuple[Held, Dict[str, Any]]]]" = queues_.SimpleQueue()
        self._stop, self._end = threading.Event(), threading.Event()
        self._claiming = Abort()  # ends the claim that waits
        self._singly_until = 0.0  # it claims one job at a time, so that one that cannot be read takes no others with it
        self._seen, self._unseen = time.monotonic(), 0.0  # when the process was seen to run last, and the longest time without that since a claim was sent
        self._failure: Optional[Exception] = None
        self._settler: Optional[threading.Thread] = None

    def stop(self) -> None:
        """Asks the worker to end: it claims no more, and waits for its handlers."""
        self._stop.set()
        self._claiming.set()
        with self._changed:
            self._changed.notify_all()

    def run(self) -> None:
        """Works until stop is called. It raises an error that does not pass: one of the server, such as a bad token, or an unexpected one of a thread."""
        *threads, self._settler = [
            threading.Thread(target=self._guard, args=(part,), name=f"sluice{part.__name__}", daemon=True) for part in (self._claim, self._keep, self._report, self._settle)
        ]
        for thread in [*threads, self._settler]:
            thread.start()
        try:
            while not self._stop.wait(0.25):  # if another thread gets a signal, only a thread that wakes runs its handler
                pass
            self._drain(threads[0])
        finally:
            self.stop()
            self._end.set()
            self._outcomes.put(None)
            for thread in [*threads, self._settler]:
                thread.join(_SLACK)
        if self._failure is not None:
            raise self._failure

    def finish(self, held: Held, result: Any, error: Optional[BaseException]) -> None:
        """Takes what a handler returned or raised."""
        outcome = held.outcome(result, error)
        with self._changed:
            self._busy -= 1
            if held.settling:  # it ignored its timeout
                self._changed.notify_all()
                return
            held.settling = outcome is not None
            if outcome is None:
                self._held.discard(held)
            self._changed.notify_all()
        if outcome is not None:
            self._outcomes.put((held, outcome))

    # Claims.

    def _claim(self) -> None:
        while not self._stop.is_set():
            body = self._next_claim()
            if body is None:
                return
            abort = self._claiming = Abort()
            if not self._claims():  # since it was looked at last
                continue
            self._see()
            self._unseen = 0
            jobs = self._send_claim(body, abort)
            self._see()
            if jobs is None:
                self._give_back(body)
            else:
                self._take(jobs, again=body.get("again", False))

    def _send_claim(self, body: Dict[str, Any], abort: Abort) -> Optional[List[Dict[str, Any]]]:
        """Claims until there is an answer. None: the worker is to claim no more, and there may be an answer that nobody reads."""
        pause = 0.1
        while True:
            try:
                return self._transport.once("POST", "/work/claim", _bytes(body), timeout=_WAIT + _SLACK, abort=abort, resend=False)["jobs"]
            except (ApiError, ConnectionFailed, *BROKEN) as error:
                if abort.is_set():
                    return None
                if isinstance(error, CertificateRefused) or isinstance(error, ApiError) and error.status not in (*PASSES, _STATE) and error.status < 500:
                    self._fail(error)
                    return None
                log.warning("claim of %s: %s; it is sent again", self._queues, error)
                if isinstance(error, TooDeep):  # the same answer would come again; its jobs come when their leases have ended
                    self._singly_until = time.monotonic() + _SINGLY
                    body.update(limit=1, token=secrets.token_hex(16), again=False)
                else:
                    body["again"] = True  # the answer may be lost
                after = error.retry_after if isinstance(error, ApiError) else None
                if abort.wait(after or pause):
                    return None
                pause = min(pause * 2, 5)

    def _give_back(self, body: Dict[str, Any]) -> None:
        """Hands back the jobs of a claim whose answer nobody reads, so that they need not wait for the end of their leases."""
        if self._failure is not None:
            return
        again = {**body, "again": True, "limit": 1}
        del again["wait"]
        try:
            jobs = self._transport.request("POST", "/work/claim", again, timeout=_BACK)["jobs"]
        except (ApiError, ConnectionFailed, *BROKEN) as error:
            log.warning("the last claim of %s is not given back: %s; if it has jobs, they run again when their leases have ended", self._queues, error)
            return
        for raw in jobs:
            held = self._hold(raw, time.monotonic())
            held.end(Draining("the worker claims no more"))
            self.finish(held, None, held.reason)

    def _claims(self) -> bool:
        """Says whether the worker may claim."""
        return self._mode == "working" and not self._stop.is_set()

    def _next_claim(self) -> Optional[Dict[str, Any]]:
        """Waits for a free slot. None: the worker ends."""
        with self._changed:
            while not self._stop.is_set() and (self._busy >= self._concurrency or not self._claims()):
                self._changed.wait()
            free = 1 if time.monotonic() < self._singly_until else self._concurrency - self._busy
        if self._stop.is_set():
            return None
        body: Dict[str, Any] = {
            "worker": self._worker, "queues": self._queues, "limit": min(free, _MOST), "wait": duration(_WAIT), "token": secrets.token_hex(16),
        }  # fmt: skip
        if self._lease is not None:
            body["lease"] = duration(self._lease)
        return body

    def _take(self, jobs: List[Dict[str, Any]], again: bool = False) -> None:
        """Begins jobs. It renews the leases of late ones first, so that no handler begins a job that another worker has: the answer may have waited for a frozen process."""
        arrived = time.monotonic()
        all_held = [self._hold(raw, arrived) for raw in jobs]
        late = [held for held in all_held if again or self._unseen > held.lease / 3]
        for lease in {held.lease for held in late}:
            same = [held for held in late if held.lease == lease]
            while not self._stop.is_set() and any(held.reason is None for held in same) and not self._renew(same, lease):
                pass  # its lease ends at some time
        for held in all_held:
            if held.reason is None and self._stop.is_set():
                held.end(Draining())
            if held.reason is None:
                self._start(held)
            else:
                self.finish(held, None, held.reason)

    def _see(self) -> None:
        """Notes that the process runs."""
        now = time.monotonic()
        self._seen, self._unseen = now, max(self._unseen, now - self._seen)

    def _hold(self, raw: Dict[str, Any], arrived: float) -> Held:
        held = Held(raw, arrived, self._save)
        with self._changed:
            older = [h for h in self._held if h.job.id == held.job.id]
        for h in older:  # the server names lost jobs by their IDs
            self._lose(h, LostError(f"job {h.job.id} was lost: it was claimed anew"))
        with self._changed:
            self._held.add(held)
            self._busy += 1
            self._changed.notify_all()
        return held

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self.stop()

    def _guard(self, part: Callable[[], None]) -> None:
        """Runs a part of the worker. A part that dies ends the worker, which would do nothing without it, and say nothing."""
        try:
            part()
        except Exception as error:
            log.exception("the worker ends, because its thread %s failed", threading.current_thread().name)
            self._fail(error)

    # Leases.

    def _keep(self) -> None:
        """Renews leases each third of their length, and notices those that ended."""
        while not self._end.is_set():
            self._see()
            now = time.monotonic()
            with self._changed:
                held = list(self._held)
            for h in held:
                if now >= h.until and h.reason is None and not h.settling:
                    self._lose(h, LostError(f"the lease of job {h.job.id} ended before it was renewed"))
                elif now >= h.times_out and not h.settling:
                    self._time_out(h, now)
            for lease in sorted({h.lease for h in held}):
                late = [h for h in held if h.lease == lease and (h.reason is None or isinstance(h.reason, (Draining, TimedOutError))) and h.until - now < lease * 2 / 3 + 0.01]
                for i in range(0, len(late), _MOST):
                    self._renew(late[i : i + _MOST], lease)
            looks = [min(h.until - h.lease * 2 / 3, h.times_out if h.reason is None else math.inf) for h in held]
            rest = min(looks, default=now + _SOON) - time.monotonic()
            self._end.wait(min(max(rest, 0.02), 0.5))

    def _renew(self, held: List[Held], lease: float) -> bool:
        """Renews leases. False: the server did not answer."""
        sent = time.monotonic()
        body = {"lease": duration(lease), "jobs": [h.named() for h in held]}
        try:
            answer = self._transport.once("POST", "/work/renew", _bytes(body), timeout=max(lease / 3, 0.3))
        except (ApiError, ConnectionFailed, *BROKEN) as error:
            log.warning("renewal of %d leases: %s", len(held), error)
            self._end.wait(min(0.2, lease / 20))
            return False
        lost = {entry["id"]: entry for entry in answer["lost"]}
        for h in held:
            entry = lost.get(h.job.id)
            if entry is None:
                h.until = sent + lease
            elif not h.settling:  # otherwise its outcome is stored
                reason = CancelledError if entry["cancelled"] else LostError
                self._lose(h, reason(f"job {h.job.id} was " + ("cancelled" if entry["cancelled"] else "lost: its lease ended")))
        return True

    def _time_out(self, held: Held, now: float) -> None:
        """Tells a handler that its timeout is over. If it ignores that, its attempt fails; it keeps its slot."""
        if held.reason is None:
            held.end(TimedOutError(f"the attempt exceeded its timeout of {held.timeout:g} s"))
        if not isinstance(held.reason, TimedOutError) or now < held.times_out + _GRACE:
            return
        with self._changed:
            if held.settling or held not in self._held:  # it has just ended
                return
            held.settling = True
        log.warning("job %s: %s, and the handler ignored it", held.job.id, held.reason)
        self._outcomes.put((held, {**held.named(), "outcome": "fail", "error": f"{held.reason}, and the handler ignored it"}))

    def _lose(self, held: Held, reason: Exception) -> None:
        log.info("%s", reason)
        with self._changed:
            self._held.discard(held)
        held.end(reason)

    def _save(self, held: Held, value: Any) -> None:
        try:
            self._transport.request("POST", "/work/checkpoint", {**held.named(), "checkpoint": value}, timeout=max(held.until - time.monotonic(), 0.1))
        except ApiError as error:
            if error.code != "lost":
                raise
            self._lose(held, LostError(f"job {held.job.id} was lost: its lease ended"))
            held.job.check()

    # Reports.

    def _report(self) -> None:
        """Sends progress each second, and heartbeats."""
        beat = 0.0
        while not self._end.wait(0 if beat == 0 else _SOON):
            self._send_progress()
            if time.monotonic() - beat >= _HEARTBEAT:
                beat = time.monotonic()
                self._heartbeat({})
        self._heartbeat({"leaving": True})

    def _send_progress(self) -> None:
        with self._changed:
            held = [h for h in self._held if h.report is not None and h.reason is None][:_MOST]
        if not held:
            return
        reports = []
        for h in held:
            report, h.report = h.report, None
            if report is not None:
                reports.append({**h.named(), "fraction": report[0], "message": report[1]})
        try:
            self._transport.once("POST", "/work/progress", _bytes({"reports": reports}), timeout=_SLACK)
        except (ApiError, ConnectionFailed, *BROKEN) as error:
            log.warning("progress of %d jobs: %s", len(reports), error)

    def _heartbeat(self, more: Dict[str, Any]) -> None:
        with self._changed:
            busy, mode = self._busy, "stopping" if self._stop.is_set() else self._mode
        body = {"worker": self._worker, "queues": self._queues, "slots": self._concurrency, "busy": busy, "version": self._version, "mode": mode, **more}
        try:
            wanted = self._transport.once("POST", "/work/heartbeat", _bytes(body), timeout=_SLACK)["wanted"]
        except (ApiError, ConnectionFailed, *BROKEN) as error:
            log.warning("heartbeat: %s", error)
            return
        if more:
            return
        if wanted == "stop" and not self._stop.is_set():
            log.info("an operator asked this worker to stop")
            self.stop()
        with self._changed:
            self._mode = "quiesced" if wanted == "quiesce" else "working"
            self._changed.notify_all()
        if wanted == "quiesce":
            self._claiming.set()

    # Outcomes.

    def _settle(self) -> None:
        while True:
            first = self._outcomes.get()
            if first is None:
                return
            batch, size = [first], _size(first)
            while len(batch) < _MOST and size < _BYTES:
                try:
                    more = self._outcomes.get_nowait()
                except queues_.Empty:
                    break
                if more is None:
                    self._outcomes.put(None)
                    break
                batch.append(more)
                size += _size(more)
            self._send_outcomes(batch)

    def _send_outcomes(self, batch: List[Any]) -> None:
        now = time.monotonic()
        for h, _ in batch:
            h.sends_until = h.sends_until or max(h.until, now + 1)
        timeout = max(max(h.sends_until for h, _ in batch) - now, 1)
        try:
            answer = self._transport.request("POST", "/work/settle", {"worker": self._worker, "jobs": [o for _, o in batch]}, timeout=timeout)
            refused: Dict[str, Exception] = {entry["id"]: ApiError(entry["error"].get("status", 0), entry["error"]) for entry in answer["failed"]}
        except (ApiError, ConnectionFailed, *BROKEN) as error:
            if len(batch) > 1 and isinstance(error, ApiError) and (error.status in _REFUSES or error.status >= 500 and error.status not in PASSES):
                for entry in batch:  # so that one outcome does not take the others with it
                    self._send_outcomes([entry])
                return
            refused = {h.job.id: error for h, _ in batch}
        again = [entry for entry in batch if not self._settled(*entry, refused.get(entry[0].job.id))]
        with self._changed:
            self._changed.notify_all()
        for entry in again:
            timer = threading.Timer(_SOON, self._outcomes.put, [entry])  # others are sent meanwhile
            timer.daemon = True
            timer.start()

    def _settled(self, held: Held, outcome: Dict[str, Any], error: Optional[Exception]) -> bool:
        """Ends a job whose outcome was sent. False: the outcome is sent again, until the lease that the job had has ended."""
        if isinstance(error, ApiError) and error.code in ("invalid", "too_large") and "result" in outcome:
            text = f"the server refused the result of the handler: {error.why}"
            self._outcomes.put((held, {**held.named(), "outcome": "fail", "permanent": True, "error": text}))
            return True
        if isinstance(error, ApiError) and (error.status in PASSES or error.status >= 500) and time.monotonic() + _SOON < held.sends_until:
            return False
        if error is not None:
            log.warning("the outcome of job %s may not be stored: %s", held.job.id, error)
        with self._changed:
            self._held.discard(held)
        return True

    # The end.

    def _drain(self, claimer: threading.Thread) -> None:
        claimer.join(_SLACK)  # a claim that was answered may bring jobs
        if self._wait_idle(self._drain_timeout):
            return
        late = self._unsettled()
        if late:
            log.warning("%d handlers still run after %s s; they are told to end", len(late), self._drain_timeout)
        for h in late:
            h.end(Draining())
        if self._wait_idle(_LAST):
            return
        late, busy = self._unsettled(), self._busy
        if late:
            log.warning("%d handlers did not end; their jobs run again when their leases have ended", len(late))
        if busy > len(late):
            log.warning("%d handlers did not end, and go on without a job: their attempts had failed or were lost before", busy - len(late))

    def _unsettled(self) -> List[Held]:
        with self._changed:
            return [h for h in self._held if not h.settling]

    def _wait_idle(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._busy == 0 and not self._held, seconds)


def _size(entry: "tuple[Held, Dict[str, Any]]") -> int:
    return len(_bytes(entry[1]))


def _bytes(body: Dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
