"""Sluice from Python: enqueue jobs, and work on them, over HTTP.

Begin with :class:`Client`; :class:`AsyncClient` is for asyncio. ``sluice_client.testing`` has a fake for your tests.
"""

from ._held import AsyncClaimedJob, ClaimedJob
from ._jobs import Enqueued, Job, Receipt, Refused, new_id
from .aio import AsyncClient
from .client import Client
from .errors import (
    ApiError,
    CancelledError,
    CertificateRefused,
    ConnectionFailed,
    EnqueueManyError,
    JobFailed,
    LostError,
    PermanentError,
    RetryError,
    SluiceError,
    SnoozeError,
    TimedOutError,
    TooDeep,
)

__all__ = [
    "ApiError",
    "AsyncClaimedJob",
    "AsyncClient",
    "CancelledError",
    "CertificateRefused",
    "ClaimedJob",
    "Client",
    "ConnectionFailed",
    "EnqueueManyError",
    "Enqueued",
    "Job",
    "JobFailed",
    "LostError",
    "PermanentError",
    "Receipt",
    "Refused",
    "RetryError",
    "SluiceError",
    "SnoozeError",
    "TimedOutError",
    "TooDeep",
    "new_id",
]
