"""The client for asyncio. Requests run in threads, so that the standard library is enough; handlers run in the loop."""

from __future__ import annotations

import asyncio
import functools
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Iterable, Mapping, Optional, Sequence, Union

from ._engine import Engine
from ._held import AsyncClaimedJob, Held
from ._jobs import Enqueued, Job, Receipt, names
from ._signals import on_signals
from ._transport import Abort
from .client import Client

AsyncHandler = Callable[[AsyncClaimedJob], Awaitable[Any]]


class AsyncClient:
    """A Client whose methods are coroutines. See Client for what they mean.

    ``calls`` is how many requests it sends at once; a call of result takes one for its whole wait.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 30.0,
        ssl_context: Optional[ssl.SSLContext] = None,
        calls: int = 32,
    ) -> None:
        self._client = Client(url, token, timeout=timeout, ssl_context=ssl_context)
        self._threads = ThreadPoolExecutor(calls, thread_name_prefix="sluice")
        self._workers: "set[tuple[Engine, asyncio.Future[None]]]" = set()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends calls of work as if they were cancelled, and closes the idle connections."""
        workers = list(self._workers)
        for engine, _ in workers:
            engine.stop()
        await asyncio.gather(*(running for _, running in workers), return_exceptions=True)
        self._client.close()
        self._threads.shutdown(wait=False)

    async def enqueue(self, queue: str, payload: Any, *, id: Optional[str] = None, **options: Any) -> Receipt:
        return await self._call(self._client.enqueue, queue, payload, id=id, **options)

    async def enqueue_many(self, jobs: Iterable[Mapping[str, Any]]) -> Enqueued:
        return await self._call(self._client.enqueue_many, jobs)

    async def job(self, id: str) -> Job:
        return await self._call(self._client.job, id)

    async def cancel(self, ids: Union[str, Sequence[str]], reason: str = "", *, by: str = "") -> int:
        return await self._call(self._client.cancel, ids, reason, by=by)

    async def result(self, id: str, *, timeout: Optional[float] = None) -> Any:
        abort = Abort()
        try:
            return await self._call(self._client._result, id, timeout, abort)
        finally:
            abort.set()  # a wait that was cancelled gives its thread back

    async def work(
        self,
        queues: Union[str, Sequence[str]],
        handler: AsyncHandler,
        *,
        concurrency: int = 10,
        lease: Optional[float] = None,
        drain_timeout: float = 30.0,
        worker: Optional[str] = None,
        version: str = "",
    ) -> None:
        """Claims jobs, and runs the handler for each as a task, until this coroutine is cancelled.

        In the main thread, SIGTERM and SIGINT end it too: it returns, and a second one ends the program. A signal for
        which the program, or asyncio.run, has a handler is left to that one, which may cancel this coroutine.
        It then waits drain_timeout seconds for its handlers, and cancels them after that. A handler whose job was
        cancelled or lost is cancelled too: ``job.check()`` says why.
        """
        loop = asyncio.get_running_loop()
        tasks: "set[asyncio.Task[Any]]" = set()

        def start(held: Held) -> None:
            loop.call_soon_threadsafe(begin, held)

        def begin(held: Held) -> None:
            task = loop.create_task(_run(handler, AsyncClaimedJob(**vars(held.job))))
            tasks.add(task)
            held.interrupt = functools.partial(loop.call_soon_threadsafe, task.cancel)
            task.add_done_callback(functools.partial(end, held))
            if held.reason is not None:
                task.cancel()

        def end(held: Held, task: "asyncio.Task[Any]") -> None:
            tasks.discard(task)
            failure = asyncio.CancelledError() if task.cancelled() else task.exception()
            result = None if failure is not None else task.result()
            engine.finish(held, result, failure)

        engine = Engine(
            self._client._transport, names(queues), start,
            concurrency=concurrency, lease=lease, worker=worker, version=version, drain_timeout=drain_timeout,
        )  # fmt: skip
        leave = on_signals(functools.partial(loop.call_soon_threadsafe, engine.stop), always=False)
        thread = ThreadPoolExecutor(1, thread_name_prefix="sluice-work")  # calls that wait for results may have all the others
        running = loop.run_in_executor(thread, engine.run)
        thread.shutdown(wait=False)  # once it is over
        self._workers.add((engine, running))
        try:
            while not running.done():  # only a loop that wakes runs the handler of a signal
                await asyncio.wait([running], timeout=0.25)
            await running
        except asyncio.CancelledError:
            engine.stop()
            await running
            raise
        finally:
            leave()
            self._workers.discard((engine, running))

    async def _call(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(call, *args, **named))


async def _run(handler: AsyncHandler, job: AsyncClaimedJob) -> Any:
    return await handler(job)
