"""The client against a real server, whose address is in SLUICE_URL."""

import asyncio
import functools
import http.server
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import unittest
import unittest.mock
from datetime import datetime, timedelta, timezone

from cutter import Cutter
from sluice_client import (
    ApiError, AsyncClient, CancelledError, Client, ConnectionFailed, EnqueueManyError, JobFailed, PermanentError, RetryError, SnoozeError, new_id,
)  # fmt: skip
from sluice_client.testing import FakeClient

HALF = b"caf\xe9".decode(errors="surrogateescape")  # as os.listdir reads the name of a file
HERE = pathlib.Path(__file__).parent
URL = os.environ.get("SLUICE_URL")
if not URL:
    sys.exit("SLUICE_URL must be the address of `sluice serve`")


def _hours(delay):
    return round(delay.total_seconds() / 3600)


class Working:
    """A worker in a thread."""

    def __init__(self, client, queue, handler, **options):
        self.stop = threading.Event()
        self.failure = None

        def work():
            try:
                client.work(queue, handler, stop=self.stop, **options)
            except Exception as error:
                self.failure = error

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive(), "the worker did not end"


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.client = Client()
        self.addCleanup(self.client.close)
        self.queue = "py-" + new_id()[-12:]

    def cutter(self):
        cutter = Cutter(URL)
        self.addCleanup(cutter.server_close)
        self.addCleanup(cutter.shutdown)
        return cutter

    def until(self, holds):
        for _ in range(300):
            if holds():
                return
            threading.Event().wait(0.1)
        self.fail("it does not come true")

    def working(self, handler, **options):
        return Working(self.client, self.queue, handler, **options)


class Enqueues(ClientTest):
    def test_a_job_is_stored_with_its_options(self):
        due = datetime.now(timezone.utc) + timedelta(days=1)
        receipt = self.client.enqueue(self.queue, {"n": 1}, tenant="acme", key="k", due_at=due, priority=2, labels={"a": "b"}, timeout=90, limit_key="host", cost=3)
        job = self.client.job(receipt.id)
        self.assertEqual((job.queue, job.payload, job.tenant, job.key, job.priority, job.labels), (self.queue, {"n": 1}, "acme", "k", 2, {"a": "b"}))
        self.assertEqual((job.raw["limit_key"], job.raw["cost"]), ("host", 3))
        self.assertEqual(job.raw["timeout_ns"], 90_000_000_000)
        self.assertFalse(receipt.duplicate)
        again = self.client.enqueue(self.queue, {"n": 2}, key="k", tenant="acme")
        self.assertEqual((again.id, again.duplicate), (receipt.id, True))

    def test_a_lost_answer_stores_the_job_once(self):
        cutter = self.cutter()
        with Client(cutter.url) as client:
            cutter.cut_next(3)
            receipt = client.enqueue(self.queue, "once")
            self.assertFalse(receipt.duplicate)
        ran = queue.Queue()
        with self.working(lambda job: ran.put(job.id)):
            self.assertEqual(ran.get(timeout=30), receipt.id)
            self.client.result(receipt.id, timeout=30)
        self.assertTrue(ran.empty())

    def test_the_fake_treats_keys_as_the_server_does(self):
        now = datetime.now(timezone.utc)
        fake, far = FakeClient(now=now), now + timedelta(days=1)
        window = {"key_scope": "window", "key_window": 7200}
        throttle = {**window, "on_duplicate": "coalesce"}
        steps = [
            {"key": "a"}, {"key": "a"}, {"key": "a", "on_duplicate": "replace"}, {"key": "a", "on_duplicate": "coalesce"}, {"key": "a", "key_scope": "forever"},
            "cancel", {"key": "a"}, {"key": "a", "key_scope": "forever"}, {"key": "a", "key_scope": "forever", "on_duplicate": "replace"},
            {"key": "w", "key_scope": "window", "key_window": 3600}, "cancel", {"key": "w", "key_scope": "window", "key_window": 3600},
            {"key": "f", "key_scope": "forever"}, "cancel", {"key": "f"}, {"key": "f", "key_scope": "forever", "on_duplicate": "replace"},
            {"key": "d", "due_at": far}, {"key": "d", "on_duplicate": "debounce", "delay": 7200}, {"key": "d", "on_duplicate": "debounce", "delay": 60},
            {"key": "m", "delay": 1}, {"key": "m", "on_duplicate": "debounce", "key_window": 7200, "delay": 86400},
            {"key": "t", **throttle}, {"key": "t", **throttle}, "cancel", {"key": "t", **throttle}, {"key": "t", **throttle},
            {"key": "t", "on_duplicate": "coalesce"}, {"key": "t", "on_duplicate": "debounce"}, "cancel", {"key": "t", **throttle},
            {"key": "t", **window, "on_duplicate": "replace"}, {"key": "u"}, {"key": "u", **throttle}, "cancel", {"key": "u", **throttle},
            {"key": "e", "key_scope": "forever"}, {"key": "e", **throttle}, "cancel", {"key": "e", **throttle},
            {"key": "r", "key_scope": "forever"}, {"key": "r", "on_duplicate": "replace"}, "cancel", {"key": "r"},
        ]  # fmt: skip
        here, there = [], []
        for n, step in enumerate(steps):
            for client, ids in ((fake, here), (self.client, there)):
                if step == "cancel":
                    client.cancel([id for id, *_ in ids])
                    continue
                receipt = client.enqueue(self.queue, n, **step)
                ids.append((receipt.id, receipt.duplicate, receipt.replaced))
        first = {id: n for n, (id, *_) in reversed(list(enumerate(here)))}, {id: n for n, (id, *_) in reversed(list(enumerate(there)))}
        said = [[(at[id], duplicate, at.get(replaced)) for id, duplicate, replaced in ids] for at, ids in zip(first, (here, there))]
        self.assertEqual(*said)
        delays = {job.id: job.due_at - now for job in fake.jobs}
        for mine, its in zip(here, there):
            job, other = fake.job(mine[0]), self.client.job(its[0])
            delay = datetime.fromisoformat(other.raw["due_at"][:19] + "+00:00") - now
            self.assertEqual([job.payload, job.state, _hours(delays[job.id])], [other.payload, other.state, _hours(delay)])

    def test_many_jobs_are_stored_and_refused_ones_named(self):
        jobs = ({"queue": self.queue, "payload": i, "priority": 99 if i == 1500 else 5} for i in range(2100))
        out = self.client.enqueue_many(jobs)
        self.assertEqual((out.stored, out.duplicates, [r.index for r in out.refused]), (2099, 0, [1500]))
        self.assertEqual(out.refused[0].error.code, "invalid")

    def test_many_jobs_whose_answer_was_lost_are_no_duplicates(self):
        cutter = self.cutter()
        with Client(cutter.url) as client:
            cutter.cut_next(2)
            out = client.enqueue_many({"queue": self.queue, "payload": i} for i in range(3))
        self.assertEqual((out.stored, out.duplicates), (3, 0))
        jobs = [{"queue": self.queue, "payload": i, "id": new_id()} for i in range(3)]
        self.client.enqueue_many(jobs[:2])
        out = self.client.enqueue_many(jobs)
        self.assertEqual((out.stored, out.duplicates), (1, 2))

    def test_many_jobs_that_end_early_say_how_far_they_came(self):
        cutter = self.cutter()

        def jobs():
            for i in range(2500):
                if i == 1000:
                    cutter.cut_next(1_000_000)
                yield {"queue": self.queue, "payload": i}

        with Client(cutter.url, timeout=10) as client, self.assertRaisesRegex(EnqueueManyError, "job 1000 and later ones have no answer: POST /jobs") as caught:
            client.enqueue_many(jobs())
        error = caught.exception
        self.assertIsInstance(error.__cause__, ConnectionFailed)
        self.assertEqual((error.result.stored, error.next, len(error.ids)), (1000, 1000, 1000))
        again = self.client.enqueue_many({"queue": self.queue, "payload": 1000 + i, "id": id} for i, id in enumerate(error.ids))
        self.assertEqual((again.stored, again.duplicates), (0, 1000))  # they had reached the server
        self.assertEqual(self.client.job(error.ids[0]).payload, 1000)

        with self.assertRaisesRegex(EnqueueManyError, "job 0 .* no option 'prio'") as caught:
            self.client.enqueue_many([{"queue": self.queue, "payload": 1}, {"queue": self.queue, "payload": 1, "prio": 3}])
        self.assertEqual((caught.exception.result.stored, caught.exception.ids), (0, []))

    def test_a_bad_call_says_why(self):
        with self.assertRaisesRegex(TypeError, "no option 'prio'"):
            self.client.enqueue(self.queue, 1, prio=3)
        with self.assertRaisesRegex(TypeError, "time zone"):
            self.client.enqueue(self.queue, 1, due_at=datetime(2026, 1, 1))
        with self.assertRaises(ApiError) as caught:
            self.client.enqueue("no such name!", 1)
        self.assertEqual((caught.exception.code, bool(caught.exception.request_id)), ("invalid", True))
        with self.assertRaisesRegex(ConnectionFailed, "is `sluice serve` running"):
            Client("http://127.0.0.1:1", timeout=0.3).enqueue(self.queue, 1)


class Redirects(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(308)
        self.send_header("Location", "https://sluice.example/login?state=secret")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Addresses(unittest.TestCase):
    def test_a_token_goes_to_no_other_machine_without_encryption(self):
        for url in ("http://jobs.example.com:7400", "http://10.0.0.1", "http://[fe80::1]:7400", "http://localhost.example", "http://127.0.0.1.example"):
            with self.subTest(url), self.assertRaisesRegex(ValueError, "would show the token to everybody on the way; use https"):
                Client(url, "sluice_secret")
        for url in ("https://jobs.example.com", "http://localhost:7400", "http://127.0.0.2", "http://[::1]:7400"):
            Client(url, "sluice_secret").close()
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("SLUICE_TOKEN", None)
            Client("http://jobs.example.com").close()  # it shows nothing

    def test_an_address_that_redirects_is_told(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirects) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with Client(f"http://127.0.0.1:{server.server_address[1]}", "sluice_secret") as client:
                for call in (lambda: client.enqueue("q", 1), lambda: client.work("q", print)):
                    with self.assertRaisesRegex(ApiError, "redirects to https://sluice.example/login; give the url of `sluice serve` itself") as caught:
                        call()
                    self.assertEqual((caught.exception.status, caught.exception.code), (308, "redirect"))
            server.shutdown()


class Works(ClientTest):
    def test_results_come_back(self):
        with self.working(lambda job: {"twice": job.payload * 2}):
            ids = [self.client.enqueue(self.queue, i).id for i in range(30)]
            self.assertEqual([self.client.result(id, timeout=30) for id in ids], [{"twice": 2 * i} for i in range(30)])

    def test_no_more_handlers_run_than_concurrency(self):
        lock, running, most = threading.Lock(), [], []
        gate = threading.Barrier(3, timeout=30)

        def handler(job):
            with lock:
                running.append(job.id)
                most.append(len(running))
            gate.wait()
            with lock:
                running.remove(job.id)

        with self.working(handler, concurrency=3):
            ids = [self.client.enqueue(self.queue, i).id for i in range(12)]
            for id in ids:
                self.client.result(id, timeout=30)
        self.assertEqual(max(most), 3)

    def test_errors_decide_how_a_job_goes_on(self):
        seen = []

        def handler(job):
            seen.append((job.payload, job.attempt))
            if job.payload == "permanent":
                raise PermanentError("no such address")
            if job.payload == "retry" and job.attempt == 1:
                raise RetryError("busy", after=0.05)
            if job.payload == "snooze" and seen.count(("snooze", 1)) == 1:
                raise SnoozeError(0.05, "not yet")
            if job.payload == "odd":
                return {1, 2}
            return "done"

        with self.working(handler):
            ids = {name: self.client.enqueue(self.queue, name).id for name in ("permanent", "retry", "snooze", "odd")}
            self.assertEqual(self.client.result(ids["retry"], timeout=30), "done")
            self.assertEqual(self.client.result(ids["snooze"], timeout=30), "done")
            for name, why in (("permanent", "no such address"), ("odd", "cannot be written as JSON")):
                with self.assertRaisesRegex(JobFailed, why) as caught:
                    self.client.result(ids[name], timeout=30)
                self.assertEqual(caught.exception.state, "dead")
        self.assertEqual(seen.count(("retry", 2)), 1)
        self.assertEqual(seen.count(("snooze", 1)), 2)  # the same attempt

    def test_a_worker_goes_on_after_an_error_that_cannot_be_sent_as_it_is(self):
        def handler(job):
            job.progress(0.5, HALF)
            if job.payload == "fails":
                raise OSError(HALF)
            return HALF if job.payload == "returns" else job.payload

        with self.working(handler, concurrency=1):
            for payload, why in (("fails", r"OSError: caf\?"), ("returns", "cannot be written as JSON")):
                id = self.client.enqueue(self.queue, payload, max_attempts=1).id
                with self.assertRaisesRegex(JobFailed, why):
                    self.client.result(id, timeout=30)
            self.assertEqual(self.client.result(self.client.enqueue(self.queue, "good").id, timeout=30), "good")

    def test_checkpoint_and_progress_are_stored(self):
        checked = threading.Event()

        def handler(job):
            if job.attempt == 1:
                self.assertGreater(job.max_attempts, 1)
                job.save_checkpoint({"page": 7})
                job.progress(0.4, "page 7 of 9")
                checked.wait(30)
                raise RetryError("again", after=0)
            return job.checkpoint

        with self.working(handler):
            id = self.client.enqueue(self.queue, 1).id
            for _ in range(300):
                shown = self.client.job(id).raw.get("progress")
                if shown:
                    break
                threading.Event().wait(0.1)
            checked.set()
            self.assertEqual((shown["fraction"], shown["message"]), (0.4, "page 7 of 9"))
            self.assertEqual(self.client.result(id, timeout=30), {"page": 7})

    def test_a_cancelled_job_ends_its_handler(self):
        began, ended = threading.Event(), queue.Queue()

        def handler(job):
            began.set()
            try:
                job.wait(60)
            except Exception as error:
                ended.put(error)
                raise

        with self.working(handler, lease=2):
            id = self.client.enqueue(self.queue, 1).id
            self.assertTrue(began.wait(30))
            self.assertEqual(self.client.cancel(id, "not wanted"), 1)
            self.assertIsInstance(ended.get(timeout=30), CancelledError)
            with self.assertRaisesRegex(JobFailed, "cancelled"):
                self.client.result(id, timeout=30)

    def test_a_handler_is_told_of_its_timeout(self):
        receipt = self.client.enqueue(self.queue, 1, timeout=0.05, max_attempts=1)
        with self.working(lambda job: job.wait(60)):
            with self.assertRaisesRegex(JobFailed, "exceeded its timeout of 0.05 s$"):
                self.client.result(receipt.id, timeout=30)

    def test_what_a_handler_returns_after_its_timeout_counts(self):
        receipt = self.client.enqueue(self.queue, 1, timeout=0.05, max_attempts=1)
        with self.working(lambda job: job.ended.wait(60) and "late"):
            self.assertEqual(self.client.result(receipt.id, timeout=30), "late")

    def test_a_handler_that_ignores_its_timeout_fails_and_keeps_its_slot(self):
        go_on, ran = threading.Event(), queue.Queue()

        def handler(job):
            ran.put(job.id)
            if job.payload == "stuck":
                go_on.wait(60)

        stuck = self.client.enqueue(self.queue, "stuck", timeout=0.05, max_attempts=1)
        with unittest.mock.patch("sluice_client._engine._GRACE", 0.05), self.working(handler, concurrency=1):
            with self.assertRaisesRegex(JobFailed, "exceeded its timeout of 0.05 s, and the handler ignored it$"):
                self.client.result(stuck.id, timeout=30)
            next_one = self.client.enqueue(self.queue, "next")
            self.assertEqual((ran.get(timeout=30), ran.empty()), (stuck.id, True))
            go_on.set()
            self.client.result(next_one.id, timeout=30)
        self.assertEqual(self.client.job(stuck.id).state, "dead")

    def test_a_drain_tells_what_becomes_of_jobs_whose_handlers_go_on(self):
        go_on, ran = threading.Event(), queue.Queue()
        self.addCleanup(go_on.set)

        def handler(job):
            ran.put(job.id)
            go_on.wait(60)

        stuck = self.client.enqueue(self.queue, "stuck", timeout=0.05, max_attempts=1)
        with unittest.mock.patch.multiple("sluice_client._engine", _GRACE=0.05, _LAST=0.1), self.assertLogs("sluice_client") as logs:
            with self.working(handler, concurrency=2, drain_timeout=0.1, lease=30):
                with self.assertRaises(JobFailed):
                    self.client.result(stuck.id, timeout=30)
                other = self.client.enqueue(self.queue, "other")
                while ran.get(timeout=30) != other.id:
                    pass
        said = [line for line in logs.output if "handlers" in line]
        self.assertEqual(len(said), 3, said)
        self.assertIn("1 handlers still run after 0.1 s; they are told to end", said[0])
        self.assertIn("1 handlers did not end; their jobs run again when their leases have ended", said[1])
        self.assertIn("1 handlers did not end, and go on without a job: their attempts had failed or were lost before", said[2])

    def test_a_lease_is_renewed_while_the_handler_runs(self):
        with self.working(lambda job: job.wait(3), lease=1):
            id = self.client.enqueue(self.queue, 1).id
            self.client.result(id, timeout=30)
        self.assertEqual(self.client.job(id).raw["recoveries"], 0)

    def test_a_worker_that_stops_waits_for_its_handlers(self):
        began, go = threading.Event(), threading.Event()

        def handler(job):
            began.set()
            go.wait(30)
            return "whole"

        with self.working(handler) as worker:
            id = self.client.enqueue(self.queue, 1).id
            self.assertTrue(began.wait(30))
            worker.stop.set()
            go.set()
        self.assertEqual(self.client.result(id, timeout=1), "whole")

    def test_a_job_goes_back_when_the_drain_is_over(self):
        began = threading.Event()

        def handler(job):
            began.set()
            job.wait(60)

        with self.working(handler, drain_timeout=0.1) as worker:
            id = self.client.enqueue(self.queue, 1).id
            self.assertTrue(began.wait(30))
            worker.stop.set()
        job = self.client.job(id)
        self.assertEqual((job.state, job.attempts), ("queued", 0))

    def test_a_lost_answer_of_a_claim_or_an_outcome_is_asked_again(self):
        cutter = self.cutter()
        ran = []
        with Client(cutter.url) as client:
            ids = [self.client.enqueue(self.queue, i).id for i in range(20)]
            cutter.cut_next(2)
            with Working(client, self.queue, lambda job: (ran.append(job.payload), cutter.cut_next(1))[0], concurrency=1):
                for id in ids:
                    self.client.result(id, timeout=60)
        self.assertEqual(sorted(ran), list(range(20)))

    def test_a_failure_that_is_sent_again_too_late_is_left_in_doubt(self):
        cutter = self.cutter()

        def handler(job):
            if job.attempt == 1:
                cutter.cut_next(1_000_000, only=b'"done":1')  # the failure is stored, and not answered before the next attempt
                raise RetryError("again", after=0)
            self.until(lambda: any("outcome" in line for line in logs.output))
            for _ in range(2):  # the answer to the first attempt did not end the second, whose lease is renewed
                lease = self.client.job(job.id).raw["lease_until"]
                self.until(lambda: self.client.job(job.id).raw["lease_until"] != lease)
            cutter.cut_next(0)
            return "second"

        id = self.client.enqueue(self.queue, 1).id
        with Client(cutter.url) as client, self.assertLogs("sluice_client") as logs, Working(client, self.queue, handler, lease=3):
            self.assertEqual(self.client.result(id, timeout=60), "second")
        self.assertEqual(self.client.job(id).attempts, 1)
        said = [line for line in logs.output if "outcome" in line]
        self.assertEqual(len(said), 1, logs.output)
        self.assertRegex(said[0], "the outcome of job .* may not be stored: ")

    def test_a_bad_token_ends_the_worker(self):
        client = Client(URL, "sluice_wrong")
        self.addCleanup(client.close)
        worker = Working(client, self.queue, lambda job: None)
        worker.thread.join(30)
        self.assertIsInstance(worker.failure, ApiError)
        self.assertEqual(worker.failure.status, 401)


class Operated(ClientTest):
    """A worker, of this version, that an operator instructs. It has a heartbeat each second."""

    def setUp(self):
        super().setUp()
        self.version = new_id()
        fast = unittest.mock.patch("sluice_client._engine._HEARTBEAT", 0.1)
        fast.start()
        self.addCleanup(fast.stop)

    def start(self, url=URL, **options):
        """Starts the worker. It returns the function that ends it as the program does, and its thread."""
        client = Client(url)
        self.addCleanup(client.close)
        worker = Working(client, self.queue, lambda job: "first", version=self.version, **options)
        self.addCleanup(worker.__exit__)
        return worker.stop.set, worker.thread

    def instruct(self, wanted):
        self.client._transport.request("POST", "/holders/instructions", {"target": {"version": self.version}, "wanted": wanted, "reason": "test"}, timeout=30)

    def shown(self, mode):
        """Waits until the worker is shown in a mode. None: it is not shown."""
        for _ in range(600):
            holders = self.client._transport.request("GET", "/holders", timeout=30)["holders"]
            found = [holder for holder in holders if holder.get("version") == self.version]
            if [holder["mode"] for holder in found] == ([mode] if mode else []):
                return found[0] if mode else None
            threading.Event().wait(0.1)
        self.fail(f"the worker is not shown as {mode}, but as {found}")

    def test_the_worker_is_seen_and_stopped(self):
        _, thread = self.start(concurrency=3, worker="h:1:" + self.version)
        holder = self.shown("working")
        self.assertEqual((holder["slots"], holder["queues"], holder["id"][:40]), (3, [self.queue], "h:1:" + self.version))
        self.instruct("stop")
        thread.join(60)
        self.assertFalse(thread.is_alive(), "the worker did not end")
        self.shown(None)

    def test_a_quiesced_worker_claims_nothing_until_it_is_told_to_work(self):
        self.start()
        self.shown("working")
        self.instruct("quiesce")
        self.shown("quiesced")
        id = self.client.enqueue(self.queue, 1).id
        with self.working(lambda job: "another"):
            self.assertEqual(self.client.result(id, timeout=60), "another")
        self.instruct("work")
        self.shown("working")
        self.assertEqual(self.client.result(self.client.enqueue(self.queue, 2).id, timeout=60), "first")

    def test_a_worker_that_stops_gives_back_a_claim_whose_answer_is_under_way(self):
        cutter = self.cutter()
        cutter.keeps = b'"lease_seconds"'
        id = self.client.enqueue(self.queue, 1).id
        stop, thread = self.start(cutter.url)
        self.assertTrue(cutter.kept.wait(60))
        cutter.keeps = None
        stop()
        thread.join(60)
        job = self.client.job(id)
        self.assertEqual((job.state, job.attempts, job.raw["releases"]), ("queued", 0, 1))


class AsyncOperated(Operated):
    def start(self, url=URL, **options):
        began, ends = threading.Event(), []

        async def handler(job):
            return "first"

        async def main():
            async with AsyncClient(url) as client:
                work = asyncio.create_task(client.work(self.queue, handler, version=self.version, **options))
                ends.append(functools.partial(asyncio.get_running_loop().call_soon_threadsafe, work.cancel))
                began.set()
                await asyncio.wait([work])

        thread = threading.Thread(target=asyncio.run, args=(main(),))
        thread.start()
        self.assertTrue(began.wait(60))

        def end():
            if thread.is_alive():
                ends[0]()
            thread.join(60)

        self.addCleanup(end)
        return ends[0], thread


class Dies(ClientTest):
    kind = "sync"

    def child(self, lease):
        process = subprocess.Popen([sys.executable, str(HERE / "child.py"), self.kind, self.queue, str(lease)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_killed_worker_loses_no_job(self):
        child = self.child(1)
        id = self.client.enqueue(self.queue, 600).id
        self.assertEqual(child.stdout.readline().split(), ["began", id])
        child.send_signal(signal.SIGKILL)
        with self.working(lambda job: "by another"):
            self.assertEqual(self.client.result(id, timeout=60), "by another")

    def test_a_frozen_worker_writes_nothing_late(self):
        child = self.child(1)
        id = self.client.enqueue(self.queue, 2.5).id
        self.assertEqual(child.stdout.readline().split(), ["began", id])
        child.send_signal(signal.SIGSTOP)
        with self.working(lambda job: "by another"):
            self.assertEqual(self.client.result(id, timeout=60), "by another")
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.stdout.readline().split()[0], "ended")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), 0)  # after the server has refused its outcome
        self.assertEqual(self.client.result(id, timeout=1), "by another")

    def test_a_frozen_worker_begins_no_job_that_another_has(self):
        child, claimed = self.child(1), False
        while not claimed:  # by the claim that waits at the server
            child.send_signal(signal.SIGSTOP)
            id = self.client.enqueue(self.queue, 0).id
            threading.Event().wait(0.5)
            claimed = self.client.job(id).state == "claimed"
            if not claimed:
                child.send_signal(signal.SIGCONT)
                self.assertEqual([child.stdout.readline().split()[0] for _ in range(2)], ["began", "ended"])
        with self.working(lambda job: "by another"):
            self.assertEqual(self.client.result(id, timeout=60), "by another")
        child.send_signal(signal.SIGCONT)
        later = self.client.enqueue(self.queue, 0).id
        self.assertEqual(child.stdout.readline().split(), ["began", later])

    def test_sigterm_drains(self):
        child = self.child(30)
        first = self.client.enqueue(self.queue, 2).id
        self.assertEqual(child.stdout.readline().split(), ["began", first])
        later = self.client.enqueue(self.queue, 600).id
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(child.stdout.read().split(), ["ended", "well"])
        self.assertEqual(self.client.result(first, timeout=1), "by the child")
        job = self.client.job(later)
        self.assertEqual((job.state, job.attempts), ("queued", 0))

    def test_a_signal_that_another_thread_gets_ends_an_idle_worker(self):
        child = self.child(30)
        id = self.client.enqueue(self.queue, 0).id
        self.assertEqual(self.client.result(id, timeout=60), "by the child")
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.wait(30), 0)

    def test_a_second_signal_ends_the_program(self):
        child = self.child(1)
        self.client.enqueue(self.queue, 600)
        child.stdout.readline()
        while child.poll() is None:  # the first may not have come when the second is sent: then they are one
            child.send_signal(signal.SIGTERM)
            threading.Event().wait(0.1)
        self.assertEqual(child.returncode, -signal.SIGTERM)


class AsyncDies(Dies):
    kind = "async"


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_coroutines_enqueue_and_work(self):
        name = "py-" + new_id()[-12:]
        cancelled = asyncio.Event()

        async def handler(job):
            if job.payload == "slow":
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise
            return job.payload + 1

        async with AsyncClient() as client:
            worker = asyncio.create_task(client.work(name, handler, concurrency=50, lease=2))
            ids = [(await client.enqueue(name, i)).id for i in range(20)]
            self.assertEqual(await asyncio.gather(*(client.result(id, timeout=30) for id in ids)), list(range(1, 21)))
            slow = (await client.enqueue(name, "slow")).id
            while (await client.job(slow)).state != "claimed":
                await asyncio.sleep(0.05)
            await client.cancel(slow, "not wanted")
            await asyncio.wait_for(cancelled.wait(), 30)
            with self.assertRaises(JobFailed):
                await client.result(slow, timeout=30)
            worker.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await worker

    async def test_calls_that_wait_for_results_do_not_keep_a_worker_from_beginning(self):
        name = "py-" + new_id()[-12:]

        async def handler(job):
            return job.payload

        async with AsyncClient(calls=2) as client:
            ids = [(await client.enqueue(name, i)).id for i in range(2)]
            results = asyncio.gather(*(client.result(id, timeout=30) for id in ids))
            await asyncio.sleep(0)  # they have both threads
            worker = asyncio.create_task(client.work(name, handler))
            self.assertEqual(await results, [0, 1])
            worker.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await worker

    async def test_an_error_that_counts_as_false_fails_the_attempt(self):
        class Errors(Exception):
            def __len__(self):
                return 0

        async def handler(job):
            raise Errors("none")

        async with AsyncClient() as client:
            name = "py-" + new_id()[-12:]
            receipt = await client.enqueue(name, 1, max_attempts=1)
            worker = asyncio.create_task(client.work(name, handler, drain_timeout=0.1))
            with self.assertRaisesRegex(JobFailed, "Errors: none"):
                await client.result(receipt.id, timeout=30)
            worker.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await worker

    async def test_a_task_is_cancelled_at_its_timeout(self):
        async with AsyncClient() as client:
            name = "py-" + new_id()[-12:]
            receipt = await client.enqueue(name, 1, timeout=0.05, max_attempts=1)
            work = asyncio.ensure_future(client.work(name, lambda job: asyncio.sleep(60)))
            with self.assertRaisesRegex(JobFailed, "exceeded its timeout of 0.05 s$"):
                await client.result(receipt.id, timeout=30)
            work.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await work

    async def test_a_checkpoint_and_a_wait_do_not_hold_up_the_loop(self):
        name, cutter, ticked = "py-" + new_id()[-12:], Cutter(URL), asyncio.Event()
        self.addCleanup(cutter.server_close)
        self.addCleanup(cutter.shutdown)

        async def handler(job):
            if job.attempt > 1:
                return job.checkpoint
            cutter.hold.clear()  # the answer to the checkpoint does not come before the loop has gone round
            asyncio.get_running_loop().call_later(0.05, lambda: (cutter.hold.set(), ticked.set()))
            await job.save_checkpoint({"page": 7})
            self.assertTrue(ticked.is_set())
            await asyncio.gather(*(job.wait(0.2) for _ in range(5)))
            raise RetryError("again", after=0)

        async with AsyncClient(cutter.url) as client:
            worker = asyncio.create_task(client.work(name, handler))
            receipt = await client.enqueue(name, 1, max_attempts=2)
            self.assertEqual(await client.result(receipt.id, timeout=30), {"page": 7})
            worker.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await worker

    async def test_many_jobs_are_stored_and_refused_ones_named(self):
        name = "py-" + new_id()[-12:]
        async with AsyncClient() as client:
            out = await client.enqueue_many({"queue": name, "payload": i, "priority": 99 if i == 1100 else 5} for i in range(1200))
        self.assertEqual((out.stored, out.duplicates, [r.index for r in out.refused]), (1199, 0, [1100]))
        async with AsyncClient("http://127.0.0.1:1", timeout=0.3) as client:
            with self.assertRaises(EnqueueManyError) as caught:
                await client.enqueue_many([{"queue": name, "payload": 1, "id": "mine"}])
        self.assertEqual((caught.exception.next, caught.exception.ids), (0, ["mine"]))

    async def test_a_program_that_handles_a_signal_keeps_it(self):
        loop, told, began = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        name = "py-" + new_id()[-12:]

        async def handler(job):
            began.set()

        loop.add_signal_handler(signal.SIGTERM, told.set)
        try:
            async with AsyncClient() as client:
                worker = asyncio.create_task(client.work(name, handler))
                await client.enqueue(name, 1)
                await asyncio.wait_for(began.wait(), 30)
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.wait_for(told.wait(), 30)
                self.assertFalse(worker.done())
                await client.close()
                await worker
        finally:
            self.assertTrue(loop.remove_signal_handler(signal.SIGTERM))

    async def test_cancelling_work_gives_jobs_back(self):
        name = "py-" + new_id()[-12:]
        began = asyncio.Event()

        async def handler(job):
            began.set()
            await asyncio.sleep(60)

        async with AsyncClient() as client:
            worker = asyncio.create_task(client.work(name, handler, drain_timeout=0.1))
            id = (await client.enqueue(name, 1)).id
            await asyncio.wait_for(began.wait(), 30)
            worker.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await worker
            job = await client.job(id)
            self.assertEqual((job.state, job.attempts), ("queued", 0))


if __name__ == "__main__":
    unittest.main()
