"""Matches ingredients: claims mentions from queues of Sluice, resolves each, and settles it in the transaction of its
effect. It needs psycopg 3 and nothing of Sluice but its SQL functions.

    python3 matcher.py --db postgres://USER@HOST/DATABASE --queues scraper,recipe
"""
import argparse
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import uuid

import psycopg
from psycopg.rows import namedtuple_row

# Classes of SQLSTATE that another attempt may mend: connection, rollback, resources, not now, system.
TRANSIENT = ("08", "40", "53", "55", "57", "58")
LOST = "SL001"


def log(event, **more):
    print(json.dumps({"event": event, **more}), file=sys.stderr, flush=True)


class Leases(threading.Thread):
    """Renews what is held, on a connection of its own: a long job must not keep the others from it."""

    def __init__(self, options, holder):
        super().__init__(daemon=True)
        self.options, self.holder = options, holder
        self.held, self.lock, self.end = {}, threading.Lock(), threading.Event()

    def holds(self, job):
        with self.lock:
            return job.id in self.held

    def take(self, jobs):
        with self.lock:
            self.held.update({job.id: job.token for job in jobs})

    def drop(self, job_id):
        with self.lock:
            self.held.pop(job_id, None)

    def run(self):
        db = None
        while not self.end.wait(min(self.options.lease / 3, 10)):
            try:
                if db is None or db.closed:  # it broke: a new one
                    db = psycopg.connect(self.options.db, autocommit=True)
                self.renew(db)
            except psycopg.Error as error:
                log("leases not renewed", error=str(error))

    def renew(self, db):
        with self.lock:
            held = dict(self.held)
        db.execute("select sluice.heartbeat(holder => %s, queues => %s, busy => %s)", (self.holder, self.options.queues, len(held)))
        rows = db.execute(
            "select id, held from sluice.renew_many(ids => %s, tokens => %s, lease_seconds => %s)",
            (list(held), list(held.values()), self.options.lease),
        )
        for job_id, still in rows:
            if not still:
                self.drop(job_id)


class Matcher:
    def __init__(self, options):
        self.options = options
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.resolver = "python " + self.holder
        self.leases = Leases(options, self.holder)
        self.stopping = False
        self.woken = False  # somebody enqueued since the last claim began
        self.claimed = 0

    def run(self):
        self.leases.start()
        wait = 1
        while not self.stopping:
            try:
                with psycopg.connect(self.options.db, autocommit=True, row_factory=namedtuple_row) as db:
                    wait = 1
                    self.work(db)
                    db.execute("select sluice.leave(holder => %s)", (self.holder,))
                    return
            except psycopg.OperationalError as error:
                # What is held and was not settled comes back when its lease has run out.
                log("database away", error=str(error), again_in=wait)
                self.leases.held.clear()
                time.sleep(wait)
                wait = min(wait * 2, 30)

    def work(self, db):
        db.add_notify_handler(self.wake)
        db.execute("listen sluice")
        while not self.stopping:
            self.woken = False
            left = self.options.limit - self.claimed if self.options.limit else self.options.batch
            if left <= 0:
                return
            jobs = db.execute(
                "select * from sluice.claim(queues => %s, holder => %s, batch => %s, lease_seconds => %s)",
                (self.options.queues, self.holder, min(left, self.options.batch), self.options.lease),
            ).fetchall()
            self.claimed += len(jobs)
            self.leases.take(jobs)
            for place, job in enumerate(jobs):
                if self.stopping:
                    self.hand_back(db, jobs[place:])
                    return
                if self.leases.holds(job):  # else somebody else has it by now
                    self.one(db, job)
                    self.leases.drop(job.id)
            if not jobs and self.options.until_empty:
                return
            if not jobs:
                self.idle(db)

    def wake(self, signal):
        """Takes a signal such as "sql queue recipe"."""
        self.woken = self.woken or any(signal.payload.endswith(" queue " + queue) for queue in self.options.queues)

    def idle(self, db):
        """Waits until somebody enqueues, or something may start by itself. A signal that is lost costs one poll."""
        (seconds,) = db.execute("select min(seconds) from sluice.wait(queues => %s)", (self.options.queues,)).fetchone()
        wait = self.options.poll if seconds is None else min(max(seconds, 0.05), self.options.poll)
        until = time.monotonic() + wait
        while not self.stopping and not self.woken and (left := until - time.monotonic()) > 0:
            if select.select([db.fileno()], [], [], min(left, 1))[0]:
                db.execute("select 1")  # which takes in what came

    def one(self, db, job):
        """Each job for itself: an error of one is no matter of the others."""
        try:
            time.sleep(self.options.work)  # stands for what takes time, such as asking a service; nothing is open meanwhile
            with db.transaction():
                made = db.execute(
                    "select ingredients.match(%s, %s, %s, %s)", (job.payload["mention"], job.id, job.attempt, self.resolver)
                ).fetchone()[0]
                db.execute(
                    "select sluice.complete(id => %s, token => %s, result => %s)", (job.id, job.token, json.dumps(made))
                )
        except psycopg.Error as error:
            if db.closed:
                raise
            self.failed(db, job, error.sqlstate, error.diag.message_primary or str(error))
        except Exception as error:  # a payload that is none of ours, for one
            self.failed(db, job, None, f"{type(error).__name__}: {error}")

    def failed(self, db, job, code, said):
        if code == LOST:
            log("claim lost", job=str(job.id))
            return
        retryable = code is not None and code[:2] in TRANSIENT
        try:
            with db.transaction():
                state = db.execute(
                    "select sluice.fail(id => %s, token => %s, error => %s, retryable => %s)", (job.id, job.token, said, retryable)
                ).fetchone()[0]
                db.execute(
                    "select ingredients.note_failure(%s, %s, %s, %s, %s)",
                    (job.id, job.attempt, self.resolver, said, state == "dead"),
                )
        except psycopg.Error as error:
            if db.closed or error.sqlstate != LOST:
                raise
            log("claim lost", job=str(job.id))

    def hand_back(self, db, jobs):
        db.execute(
            "select sluice.release_many(ids => %s, tokens => %s, reason => 'the matcher stops')",
            ([job.id for job in jobs], [job.token for job in jobs]),
        )

    def stop(self, *_):
        self.stopping = True


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--db", default=os.environ.get("INGREDIENTS_DB", ""), help="URL of the database (or INGREDIENTS_DB)")
    flags.add_argument("--queues", default="scraper,recipe", type=lambda text: text.split(","), help="sources to claim from")
    flags.add_argument("--batch", default=10, type=int, help="how many to claim at a time")
    flags.add_argument("--lease", default=180, type=float, help="seconds that a claim holds without being renewed")
    flags.add_argument("--limit", default=0, type=int, help="end after so many jobs; 0: never")
    flags.add_argument("--until-empty", action="store_true", help="end when there is nothing to claim")
    flags.add_argument("--poll", default=2, type=float, help="seconds after which to claim again if no signal came")
    flags.add_argument("--work", default=0, type=float, help="seconds that each job takes besides, for the demo")
    matcher = Matcher(flags.parse_args())
    signal.signal(signal.SIGTERM, matcher.stop)
    signal.signal(signal.SIGINT, matcher.stop)
    matcher.run()


if __name__ == "__main__":
    main()
