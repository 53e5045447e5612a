"""Jobs as the client sends and gets them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

Seconds = Union[int, float, timedelta]

_OPTIONS = {
    "tenant", "key", "key_scope", "key_window", "on_duplicate", "due_at", "delay", "priority", "expires_at", "labels",
    "max_attempts", "timeout", "order_key", "limit_key", "cost", "after", "after_failure", "after_failures", "batch", "hold",
}  # fmt: skip
_DURATIONS = {"key_window", "delay", "timeout"}
_INSTANTS = {"due_at", "expires_at"}


def new_id() -> str:
    """Returns a new ID (UUIDv7). IDs that are made later sort later."""
    ms = time.time_ns() // 1_000_000
    raw = bytearray(ms.to_bytes(6, "big") + os.urandom(10))
    raw[6] = raw[6] & 0x0F | 0x70
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def duration(value: Seconds, name: str = "a duration") -> str:
    """Writes seconds as the server reads them."""
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise TypeError(f"{name} must be seconds or a timedelta, not {type(value).__name__}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds < 9e9:
        raise ValueError(f"{name} of {seconds} s must not be negative, and not longer than 285 years")
    return f"{round(seconds * 1e6)}us"


def job_body(queue: str, payload: Any, id: Optional[str], options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns a job as the server reads it."""
    if not isinstance(queue, str) or not queue:
        raise TypeError("queue must be the name of a queue")
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"enqueue has no option {sorted(unknown)[0]!r}; it has {', '.join(sorted(_OPTIONS))}")
    body: Dict[str, Any] = {"id": id or new_id(), "queue": queue, "payload": payload}
    for name, value in options.items():
        if value is None:
            continue
        if name == "key" and value == "":
            raise ValueError("key is empty; give it a value, or leave it out")
        if name in _DURATIONS:
            value = duration(value, name)
        elif name in _INSTANTS:
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise TypeError(f"{name} must be a datetime with a time zone")
            value = value.astimezone(timezone.utc).isoformat()
        body[name] = value
    return body


@dataclass(frozen=True)
class Receipt:
    """What became of an enqueued job."""

    #: the job, or the job that has its key
    id: str
    #: the job was not stored, because another has its ID or key
    duplicate: bool = False
    #: the waiting job that this one replaced
    replaced: Optional[str] = None


@dataclass(frozen=True)
class Refused:
    """A job of enqueue_many that the server refused."""

    #: the place of the job among those given, from 0
    index: int
    #: the job's ID
    id: str
    #: why
    error: Exception


@dataclass
class Enqueued:
    """What became of the jobs of enqueue_many."""

    stored: int = 0
    duplicates: int = 0
    refused: List[Refused] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """A job as it is stored."""

    id: str
    queue: str
    state: str
    payload: Any = None
    tenant: str = ""
    key: str = ""
    priority: int = 5
    labels: Mapping[str, str] = field(default_factory=dict)
    #: failed attempts of this life
    attempts: int = 0
    #: the failed attempts that bury it; 0: the queue's setting, which a handler's job has here
    max_attempts: int = 0
    error: str = ""
    result: Any = None
    checkpoint: Any = None
    #: all that the server answered
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Job":
        """Reads a job of the server."""
        return cls(
            id=raw["id"], queue=raw["queue"], state=raw.get("state", ""), payload=raw.get("payload"), tenant=raw.get("tenant", ""),
            key=raw.get("key", ""), priority=raw.get("priority", 5), labels=raw.get("labels") or {}, attempts=raw.get("attempts", 0), max_attempts=raw.get("max_attempts", 0),
            error=raw.get("error", ""), result=raw.get("result"), checkpoint=raw.get("checkpoint"), raw=raw,
        )  # fmt: skip


def names(queues: Union[str, Sequence[str]]) -> List[str]:
    """Returns the queues to claim from."""
    out = [queues] if isinstance(queues, str) else list(queues)
    if not out or not all(isinstance(q, str) and q for q in out):
        raise TypeError("queues must be the name of a queue, or several names")
    return out
