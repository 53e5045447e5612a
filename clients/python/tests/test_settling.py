"""Outcomes that cannot be sent as they are, and jobs that come twice."""

import json
import unittest
import unittest.mock
from datetime import timedelta

from sluice_client import Client, EnqueueManyError, LostError, PermanentError, RetryError, SnoozeError, _engine
from sluice_client._engine import Engine
from sluice_client._held import outcome
from sluice_client._transport import Transport
from test_answers import Unreadable, serving

HALF = b"caf\xe9".decode(errors="surrogateescape")  # as os.listdir reads the name of a file


class Silent(Exception):
    def __str__(self):
        return self.args[9]


class Strict(Unreadable):
    """Refuses requests of several jobs as too large, and a large job. It does not answer for a job that is lost."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        jobs = asked if isinstance(asked, list) else asked["jobs"]
        self.server.asked.append([job["id"] for job in jobs])
        job, status = jobs[0], 200
        text = {"results": [{"id": job["id"]}]} if isinstance(asked, list) else {"done": 1, "failed": []}
        if len(jobs) > 1 or "large" in (job.get("result"), job.get("payload")):
            status, text = 413, {"code": "too_large", "why": "the body is too large"}
        if len(jobs) == 1 and job.get("payload") == "lost":
            status, text = 500, {}
        answer = json.dumps(text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Away(Unreadable):
    """Says of the second job that the store does not answer: once, or as long as it is down."""

    down = False

    def do_POST(self):
        ids = [job["id"] for job in json.loads(self.rfile.read(int(self.headers["Content-Length"])))]
        fails = self.down or not self.server.asked
        self.server.asked.append(ids)
        error = {"status": 503, "code": "store_unavailable", "why": "the store does not answer", "retry_after_seconds": 0.01}
        text = json.dumps({"results": [{"id": id, "error": error} if id == "b" and fails else {"id": id} for id in ids]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Down(Away):
    down = True


class Failing(Unreadable):
    """Fails for requests of several jobs, and for the first request of the first job. It answers each renewal that the first job is lost."""

    def do_POST(self):
        jobs = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["jobs"]
        self.server.asked.append([job["id"] for job in jobs])
        status, text = 200, {"done": 1, "failed": []}
        if self.path.endswith("/renew"):
            text = {"lost": [{"id": "one", "cancelled": False}]}
        elif len(jobs) > 1:
            status, text = 500, {"code": "failed", "why": "the server failed"}
        elif self.server.asked.count(["one"]) == 1 and jobs[0]["id"] == "one":
            text["failed"] = [{"id": "one", "error": {"status": 500, "code": "failed", "why": "the server failed"}}]
        answer = json.dumps(text).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Many(unittest.TestCase):
    def test_jobs_that_the_store_cannot_take_yet_are_sent_again(self):
        jobs = [{"queue": "q", "payload": 1, "id": id} for id in "abc"]
        with serving(Away) as (url, asked), Client(url) as client:
            out = client.enqueue_many(jobs)
        self.assertEqual((out.stored, out.refused, asked), (3, [], [["a", "b", "c"], ["b"]]))
        with serving(Down) as (url, _), Client(url, timeout=0.1) as client, self.assertRaisesRegex(EnqueueManyError, "the store does not answer") as caught:
            client.enqueue_many(jobs)
        self.assertEqual((caught.exception.result.stored, caught.exception.next, caught.exception.ids), (0, 0, ["a", "b", "c"]))

    def test_jobs_that_are_too_large_together_are_stored_apart(self):
        with serving(Strict) as (url, _), Client(url) as client:
            out = client.enqueue_many({"queue": "q", "payload": payload} for payload in ("a", "large", "b", "c", "d"))
            self.assertEqual((out.stored, [(job.index, job.error.code) for job in out.refused]), (4, [(1, "too_large")]))
            with self.assertRaises(EnqueueManyError) as caught:
                client.enqueue_many({"queue": "q", "payload": payload, "id": payload} for payload in ("a", "b", "lost", "c"))
        self.assertEqual((caught.exception.result.stored, caught.exception.next, caught.exception.ids), (2, 2, ["lost", "c"]))


class Outcomes(unittest.TestCase):
    def test_every_outcome_can_be_sent(self):
        errors = [OSError(HALF), PermanentError(HALF), SnoozeError(1, HALF), Silent("no tenth argument")]
        for result, error in [(None, error) for error in errors] + [(HALF, None), ({1: {2}}, None)]:
            json.dumps(outcome(result, error), ensure_ascii=False).encode()
        self.assertEqual(outcome(None, errors[0])["error"], "OSError: caf?")
        self.assertEqual(outcome(None, errors[3])["error"], "Silent, of which the worker can make nothing: IndexError")
        self.assertEqual(outcome(HALF, None)["permanent"], True)

    def test_a_delay_is_seconds_or_a_timedelta(self):
        for seconds, delay in ((2, "2000000us"), (timedelta(minutes=1), "60000000us"), (timedelta(days=-1), "1000us"), (-1, "1000us")):
            self.assertEqual(outcome(None, RetryError("busy", after=seconds))["delay"], delay)
            self.assertEqual(outcome(None, SnoozeError(seconds))["delay"], delay)
        for raised, delay in ((TypeError, "60"), (ValueError, 1e10), (ValueError, float("nan"))):
            with self.assertRaisesRegex(raised, "after"):
                RetryError("busy", after=delay)
            with self.assertRaisesRegex(raised, "seconds"):
                SnoozeError(delay)


class Engines(unittest.TestCase):
    def engine(self, url="http://127.0.0.1:1"):
        transport = Transport(url, None, None)
        self.addCleanup(transport.close)
        self.started = []
        return Engine(transport, ["q"], self.started.append, concurrency=9, lease=None, worker="w", version="", drain_timeout=1)

    def claimed(self, id, token):
        return {"id": id, "queue": "q", "token": token, "lease_seconds": 60}

    def test_an_outcome_that_is_too_large_takes_no_other_with_it(self):
        with serving(Strict) as (url, asked):
            engine = self.engine(url)
            engine._take([self.claimed(id, "t") for id in ("one", "two", "three")])
            results = {"one": "small", "two": "large", "three": "small"}
            engine._send_outcomes([(held, {**held.named(), **outcome(results[held.job.id], None)}) for held in self.started])
        self.assertEqual(asked, [["one", "two", "three"], ["one"], ["two"], ["three"]])
        (again, failed) = engine._outcomes.get_nowait()
        self.assertEqual((again.job.id, failed["outcome"], failed["permanent"], engine._outcomes.empty()), ("two", "fail", True, True))

    def test_an_outcome_on_which_the_server_fails_is_sent_again(self):
        with serving(Failing) as (url, asked), unittest.mock.patch.object(_engine, "_SOON", 0.01):
            engine = self.engine(url)
            engine._take([self.claimed(id, "t") for id in ("one", "two")])
            engine._send_outcomes([(held, {**held.named(), **outcome(None, None)}) for held in self.started])
            self.assertEqual([held.job.id for held in engine._held], ["one"])
            engine._send_outcomes([engine._outcomes.get(timeout=60)])
            self.assertEqual((asked, engine._held), ([["one", "two"], ["one"], ["two"], ["one"]], set()))

    def test_an_outcome_on_which_the_server_always_fails_is_given_up_with_its_lease(self):
        with serving(Failing) as (url, asked):
            engine = self.engine(url)
            engine._take([{**self.claimed("one", "t"), "lease_seconds": 1}])
            with self.assertLogs("sluice_client", "WARNING"):
                engine._send_outcomes([(held, {**held.named(), **outcome(None, None)}) for held in self.started])
        self.assertEqual((asked, engine._held, engine._outcomes.empty()), ([["one"]], set(), True))

    def test_a_process_that_was_frozen_renews_before_it_begins_jobs(self):
        with serving(Failing) as (url, asked):
            engine = self.engine(url)
            engine._seen -= 100
            engine._see()
            engine._take([self.claimed(id, "t") for id in ("one", "two")])
        self.assertEqual(([held.job.id for held in self.started], asked), (["two"], [["one", "two"]]))
        self.assertEqual((engine._busy, [held.job.id for held in engine._held]), (1, ["two"]))

    def test_a_job_that_is_claimed_anew_is_no_more_that_of_the_earlier_claim(self):
        engine = self.engine()
        for token in ("first", "second"):
            engine._take([self.claimed("one", token)])
        first, second = self.started
        self.assertIsInstance(first.reason, LostError)
        self.assertIsNone(second.reason)
        self.assertEqual(engine._held, {second})
        for held in self.started:
            engine.finish(held, "done", None)
        self.assertIs(engine._outcomes.get_nowait()[0], second)
        self.assertTrue(engine._outcomes.empty())


if __name__ == "__main__":
    unittest.main()
