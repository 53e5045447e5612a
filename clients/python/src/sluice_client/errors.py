"""The errors of the client, and those by which a handler says how its job goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, List, Mapping, Optional

from ._jobs import Seconds, duration

if TYPE_CHECKING:
    from ._jobs import Enqueued

__all__ = [
    "ApiError",
    "CancelledError",
    "CertificateRefused",
    "ConnectionFailed",
    "EnqueueManyError",
    "JobFailed",
    "LostError",
    "PermanentError",
    "RetryError",
    "SluiceError",
    "SnoozeError",
    "TimedOutError",
    "TooDeep",
]


class SluiceError(Exception):
    """The base of all errors of this package."""


class ConnectionFailed(SluiceError):
    """The server could not be reached in time. The request may have been carried out."""


class TooDeep(ConnectionFailed):
    """The answer is JSON that is nested deeper than Python decodes."""


class CertificateRefused(ConnectionFailed):
    """The client does not trust the server's certificate, or the server does not accept the client's. Nothing was carried out."""


class ApiError(SluiceError):
    """The server refused a request.

    Programs look at ``code``, people at ``why`` and ``do``. ``request_id`` is in the server's log.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code: str = str(problem.get("code", "unknown"))
        self.what: str = str(problem.get("what", ""))
        self.why: str = str(problem.get("why") or problem.get("detail") or problem.get("title") or "the answer says no reason")
        self.do: str = str(problem.get("do", ""))
        self.fields: list[dict[str, str]] = list(problem.get("fields") or [])
        self.request_id: str = str(problem.get("request_id", ""))
        #: seconds after which the same request may be sent again; None: not said
        self.retry_after = retry_after
        text = f"{self.what}: {self.why}" if self.what else self.why
        if self.do:
            text += f"; {self.do}"
        super().__init__(f"{text} (status {status}, {self.code}, request {self.request_id or 'unknown'})")


class EnqueueManyError(SluiceError):
    """enqueue_many ended before its last job. Its cause says why."""

    def __init__(self, result: Enqueued, next: int, ids: List[str], cause: Exception) -> None:
        #: what became of the jobs before next
        self.result = result
        #: the place of the first job without an answer, from 0
        self.next = next
        #: the IDs of the jobs from next on that were sent, and may be stored; with the same IDs they can be sent again
        self.ids = ids
        super().__init__(f"enqueue jobs: job {next} and later ones have no answer: {str(cause) or type(cause).__name__}")


class JobFailed(SluiceError):
    """The job whose result was asked for has no result: it is dead or cancelled."""

    def __init__(self, job_id: str, state: str, error: str) -> None:
        self.job_id, self.state, self.error = job_id, state, error
        super().__init__(f"job {job_id} is {state}" + (f": {error}" if error else ""))


class PermanentError(SluiceError):
    """Raised by a handler: the job is dead at once, because another attempt would fail too."""


class RetryError(SluiceError):
    """Raised by a handler: the attempt failed. The next one comes after some seconds, or by the queue's backoff."""

    def __init__(self, message: str = "", after: Optional[Seconds] = None) -> None:
        self.after = None if after is None else _seconds(after, "after")
        super().__init__(message)


class SnoozeError(SluiceError):
    """Raised by a handler: the job comes back after some seconds, and no attempt counts."""

    def __init__(self, seconds: Seconds, reason: str = "") -> None:
        self.seconds, self.reason = _seconds(seconds, "seconds"), reason
        super().__init__(reason)


def _seconds(value: Seconds, name: str) -> float:
    """Returns a delay in seconds. One that is over is 0."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and value < 0:
        value = 0
    duration(value, name)  # says what is wrong with it
    return float(value)


class CancelledError(SluiceError):
    """Somebody cancelled the job. Whatever its handler does now is not stored."""


class TimedOutError(SluiceError):
    """The attempt took longer than its timeout: it fails, unless the handler still returns."""


class LostError(SluiceError):
    """The job's lease ended, so another worker may have it. Whatever its handler does now is not stored."""
