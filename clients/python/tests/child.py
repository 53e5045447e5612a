"""Workers for the tests that kill or freeze them: they print each job, and then wait as many seconds as its payload says.

A byte to the standard input is a SIGTERM that another thread than the main one gets.
"""

import asyncio
import os
import signal
import sys
import threading

from sluice_client import AsyncClient, Client


def work(queue, lease):
    def handler(job):
        print("began", job.id, flush=True)
        try:
            job.wait(job.payload)
        except Exception as error:
            print("ended", type(error).__name__, flush=True)
            raise
        print("ended", "well", flush=True)
        return "by the child"

    Client().work(queue, handler, concurrency=1, lease=float(lease))


async def work_async(queue, lease):
    async def handler(job):
        print("began", job.id, flush=True)
        try:
            await asyncio.sleep(job.payload)
        except asyncio.CancelledError:
            print("ended", "cancelled", flush=True)
            raise
        print("ended", "well", flush=True)
        return "by the child"

    async with AsyncClient() as client:
        await asyncio.gather(*(client.work(q, handler, concurrency=1, lease=float(lease)) for q in (queue, queue + "-2")))


def terminate_here():
    if os.read(0, 1):
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)


def main(kind, queue, lease):
    threading.Thread(target=terminate_here, daemon=True).start()
    if kind == "async":
        asyncio.run(work_async(queue, lease))
    else:
        work(queue, lease)


if __name__ == "__main__":
    main(*sys.argv[1:])
