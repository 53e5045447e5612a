"""A worker for the tests that kill or freeze it: it prints each job, and then waits for its end."""

import sys

from sluice_client import Client


def main(queue, lease):
    def handler(job):
        print("began", job.id, flush=True)
        try:
            job.wait(2.5 * float(lease) if job.payload == "once" else 600)
        except Exception as error:
            print("ended", type(error).__name__, flush=True)
            raise
        print("ended", "well", flush=True)
        return "by the child"

    Client().work(queue, handler, concurrency=1, lease=float(lease))


if __name__ == "__main__":
    main(*sys.argv[1:])
