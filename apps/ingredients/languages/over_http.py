"""Matches ingredients over HTTP: works for a Sluice server, whatever its store, and writes into the kitchen's database.

A job brings its mention with it, such as {"raw": "200 g basil leaves"}. Effect and end of the job are in two databases:
the kitchen decides each job's mention once, and a job that comes again gets the same answer.

    python3 over_http.py take recipe < mentions.ndjson
    python3 over_http.py work --queues scraper,recipe --db postgres://USER@HOST/DATABASE
"""
import argparse
import functools
import json
import os
import socket
import sys
import uuid

import psycopg
from sluice_client import Client, PermanentError, RetryError

# Classes of SQLSTATE that another attempt may mend: connection, rollback, resources, not now, system.
TRANSIENT = ("08", "40", "53", "55", "57", "58")


def match(options, resolver, job):
    mention = job.payload
    with psycopg.connect(options.db, autocommit=True) as kitchen:
        try:
            (number,) = kitchen.execute(
                "select ingredients.heard(%s, %s, %s, %s)", (job.id, job.queue, mention["raw"], mention.get("faults", 0))
            ).fetchone()
            (made,) = kitchen.execute("select ingredients.match(%s, %s, %s, %s)", (number, job.id, job.attempt, resolver)).fetchone()
        except psycopg.Error as error:
            raise failed(kitchen, job, resolver, error) from None
    job.wait(options.work)
    return made


def failed(kitchen, job, resolver, error):
    """Writes the failed attempt on the trail, and returns the error that says how the job goes on."""
    if kitchen.broken:
        return error
    said = error.diag.message_primary or str(error)
    permanent = error.sqlstate is not None and error.sqlstate[:2] not in TRANSIENT
    last = permanent or job.attempt >= job.max_attempts
    kitchen.execute("select ingredients.note_failure(%s, %s, %s, %s, %s)", (job.id, job.attempt, resolver, said, last))
    return PermanentError(said) if permanent else RetryError(said)


def work(client, options):
    worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    handler = functools.partial(match, options, "python " + worker)
    client.work(options.queues, handler, worker=worker, concurrency=options.slots, lease=options.lease)


def take(client, options):
    done = client.enqueue_many({"queue": options.source, "payload": json.loads(line)} for line in sys.stdin)
    for refused in done.refused:
        print(f"mention {refused.index + 1}: {refused.error}", file=sys.stderr)
    print(f"{done.stored} mentions of {options.source} taken in")
    return 1 if done.refused else 0


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = flags.add_subparsers(dest="verb", required=True)
    taking = verbs.add_parser("take", help="take mentions in, one JSON object a line")
    taking.add_argument("source", help="the queue, such as recipe")
    working = verbs.add_parser("work", help="match until SIGTERM")
    working.add_argument("--db", default=os.environ.get("INGREDIENTS_DB", ""), help="URL of the kitchen (or INGREDIENTS_DB)")
    working.add_argument("--queues", default="scraper,recipe", type=lambda text: text.split(","), help="sources to claim from")
    working.add_argument("--slots", default=10, type=int, help="how many to match at a time")
    working.add_argument("--lease", default=180, type=float, help="seconds that a claim holds without being renewed")
    working.add_argument("--work", default=0, type=float, help="seconds that each job takes besides, for tests")
    options = flags.parse_args()
    with Client() as client:  # of SLUICE_URL and SLUICE_TOKEN
        return {"take": take, "work": work}[options.verb](client, options)


if __name__ == "__main__":
    sys.exit(main())
