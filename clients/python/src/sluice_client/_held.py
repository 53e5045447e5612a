"""A claimed job, as its handler sees it, and how it goes on after the handler has ended."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional

from ._jobs import Job, duration
from .errors import CancelledError, LostError, PermanentError, RetryError, SnoozeError, TimedOutError

_LONGEST_TEXT = 50_000
_SHORTEST = 0.001  # the server refuses a delay of 0


@dataclass(frozen=True)
class _Claimed(Job):
    """A job that this worker has claimed."""

    #: the number of this attempt, from 1
    attempt: int = 1
    #: set when the job was cancelled or lost, its timeout is over, or the worker has to end: end the work then
    ended: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)
    _sink: Any = field(default=None, repr=False, compare=False)

    def progress(self, fraction: float, message: str = "") -> None:
        """Reports how far the job has come, from 0 to 1. At most one report a second is sent, the newest."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress of {fraction} must be from 0 to 1")
        self._sink.progress(float(fraction), str(message))

    def check(self) -> None:
        """Raises CancelledError or LostError if this worker no longer has the job, and TimedOutError after its timeout."""
        reason = self._sink.reason
        if reason is not None:
            raise reason


@dataclass(frozen=True)
class ClaimedJob(_Claimed):
    """A job that this worker has claimed."""

    def save_checkpoint(self, value: Any) -> None:
        """Saves a value that the next attempt finds as ``checkpoint``. It raises LostError if the job is lost."""
        self._sink.save_checkpoint(value)

    def wait(self, seconds: float) -> None:
        """Waits. It raises what ``check`` raises, as soon as it would."""
        self.ended.wait(seconds)
        self.check()


@dataclass(frozen=True)
class AsyncClaimedJob(_Claimed):
    """A job that a worker of AsyncClient has claimed: a ClaimedJob that does not hold up the event loop."""

    async def save_checkpoint(self, value: Any) -> None:
        """Saves a value that the next attempt finds as ``checkpoint``. It raises LostError if the job is lost."""
        await asyncio.to_thread(self._sink.save_checkpoint, value)

    async def wait(self, seconds: float) -> None:
        """Waits. The handler is cancelled meanwhile when ``check`` would raise."""
        await asyncio.sleep(seconds)
        self.check()


class Draining(LostError):
    """The worker has to end, and the time for its handlers is over."""

    def __init__(self, why: str = "the worker ends, and the job goes back") -> None:
        super().__init__(why)


class Held:
    """A claimed job, its lease and its state in this process."""

    def __init__(self, raw: Mapping[str, Any], arrived: float, save: Callable[["Held", Any], None]) -> None:
        self.token: str = raw["token"]
        self.lease: float = raw["lease_seconds"]
        self.until = arrived + self.lease
        self.timeout: float = raw.get("timeout_seconds") or 0
        self.times_out = arrived + self.timeout if self.timeout > 0 else math.inf
        self.reason: Optional[Exception] = None  # why the handler is to end
        self.report: Optional[tuple[float, str]] = None  # to be sent
        self.settling = False
        self.sends_until = 0.0  # until when its outcome is sent again; 0: it was not sent
        self.interrupt: Optional[Callable[[], object]] = None
        self._save = save
        read = Job.of(raw)
        self.job = ClaimedJob(**{**read.__dict__, "attempt": read.attempts + 1, "_sink": self})

    def progress(self, fraction: float, message: str) -> None:
        self.report = (fraction, _whole(message)[:1000])

    def save_checkpoint(self, value: Any) -> None:
        self.job.check()
        self._save(self, value)

    def end(self, reason: Exception) -> None:
        """Tells the handler to end."""
        if self.reason is not None:
            return
        self.reason = reason
        self.job.ended.set()
        if self.interrupt is not None:
            self.interrupt()

    def named(self) -> Dict[str, Any]:
        return {"id": self.job.id, "token": self.token}

    def outcome(self, result: Any, error: Optional[BaseException]) -> Optional[Dict[str, Any]]:
        """Returns what to tell the server after the handler. None: nothing, because the job is no longer here."""
        if isinstance(self.reason, TimedOutError):
            if isinstance(error, asyncio.CancelledError):
                error = self.reason
            return {**self.named(), **outcome(result, error)}
        if self.reason is not None and not isinstance(self.reason, Draining):
            return None
        if self.reason is not None and error is not None:
            return {**self.named(), "outcome": "release", "reason": str(self.reason)}
        return {**self.named(), **outcome(result, error)}


def outcome(result: Any, error: Optional[BaseException]) -> Dict[str, Any]:
    """Returns the outcome of an attempt, as the server reads it."""
    try:
        return _outcome(result, error)
    except Exception as bad:  # a job without an outcome would keep its lease and its slot for ever
        return {"outcome": "fail", "error": f"{type(error).__name__}, of which the worker can make nothing: {type(bad).__name__}"}


def _outcome(result: Any, error: Optional[BaseException]) -> Dict[str, Any]:
    if error is None:
        if result is None:
            return {"outcome": "complete"}
        try:
            json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError) as bad:
            return {"outcome": "fail", "permanent": True, "error": f"the result of the handler cannot be written as JSON: {bad}"}
        return {"outcome": "complete", "result": result}
    if isinstance(error, SnoozeError):
        return {"outcome": "release", "delay": duration(max(error.seconds, _SHORTEST)), "reason": _whole(str(error.reason))[:1000]}
    out: Dict[str, Any] = {"outcome": "fail", "error": _text(error), "stack": _stack(error)}
    if isinstance(error, PermanentError):
        out["permanent"] = True
    if isinstance(error, RetryError) and error.after is not None:
        out["delay"] = duration(max(error.after, _SHORTEST))
    return out


def _text(error: BaseException) -> str:
    if isinstance(error, (PermanentError, RetryError, CancelledError, TimedOutError)):
        return _whole(str(error) or type(error).__name__)[:_LONGEST_TEXT]
    return _whole(f"{type(error).__name__}: {error}")[:_LONGEST_TEXT]


def _stack(error: BaseException) -> str:
    return _whole("".join(traceback.format_exception(type(error), error, error.__traceback__)))[-_LONGEST_TEXT:]


def _whole(text: str) -> str:
    """Replaces halves of characters, such as Python reads from file names: they cannot be sent."""
    return text.encode("utf-8", "replace").decode()
