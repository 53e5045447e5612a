"""Answers that a client cannot use."""

import asyncio
import contextlib
import http.server
import json
import threading
import unittest

from sluice_client import AsyncClient, Client, ConnectionFailed, TooDeep


class Unreadable(http.server.BaseHTTPRequestHandler):
    """Answers claims and new jobs with JSON that Python does not decode."""

    text = b'{"jobs":[{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"

    def do_POST(self):
        self.server.asked.append((self.path.rpartition("/")[2], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        text = self.text if self.path.endswith(("/claim", "/jobs")) else b'{"wanted":""}'
        with contextlib.suppress(OSError):  # a worker that stops does not wait for the answer
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def log_message(self, *_):
        pass


class Silent(Unreadable):
    """Keeps connections, and says nothing on them once it is silent."""

    protocol_version = "HTTP/1.1"
    together = threading.Barrier(3)  # so that each of the first requests has a connection of its own
    silent, over = threading.Event(), threading.Event()

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.silent.is_set():
            self.over.wait(60)
            return
        self.together.wait(60)
        text = b'{"id":"one","queue":"q"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Waits(Unreadable):
    """Keeps those who wait for the end of a job."""

    text = b'{"id":"two"}'
    over = threading.Event()

    def do_GET(self):
        self.server.asked.append(self.path)
        self.over.wait(60)


class Strange(Unreadable):
    """Answers claims with JSON that says nothing."""

    text = b"7"


class Engined(Unreadable):
    """Refuses claims, because an engine runs the jobs of the queue."""

    def do_POST(self):
        self.server.asked.append((self.path.rpartition("/")[2], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        refused = self.path.endswith("/claim")
        text = b'{"code":"other_runner","why":"an engine runs its jobs"}' if refused else b'{"wanted":"work"}'
        with contextlib.suppress(OSError):
            self.send_response(409 if refused else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


@contextlib.contextmanager
def serving(handler):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.asked
        server.shutdown()


class Answers(unittest.TestCase):
    def test_an_answer_that_is_nested_too_deep_is_told(self):
        async def enqueue(url):
            async with AsyncClient(url) as client:
                await client.enqueue("q", 1)

        with serving(Unreadable) as (url, _), Client(url) as client:
            for call in (lambda: client.enqueue("q", 1), lambda: asyncio.run(enqueue(url))):
                with self.assertRaisesRegex(TooDeep, "the answer of 200 cannot be read: its JSON is nested deeper than Python decodes"):
                    call()

    def test_jobs_that_came_with_one_that_is_nested_too_deep_come_alone(self):
        stop = threading.Event()
        with serving(Unreadable) as (url, asked), Client(url) as client, self.assertLogs("sluice_client", "WARNING") as logs:
            worker = threading.Thread(target=client.work, args=("q", print), kwargs={"stop": stop})
            worker.start()
            claims = lambda: [body for what, body in list(asked) if what == "claim"]
            for _ in range(300):
                if len(claims()) > 2:
                    break
                stop.wait(0.1)
            stop.set()
            worker.join(60)
        self.assertFalse(worker.is_alive())
        self.assertEqual([(claim["limit"], claim.get("again", False)) for claim in claims()[:3]], [(10, False), (1, False), (1, False)])
        self.assertEqual(len({claim["token"] for claim in claims()[:3]}), 3)
        self.assertIn("claim of ['q']: the answer of 200 cannot be read", "".join(logs.output))

    def test_a_server_that_is_silent_is_asked_once_in_the_time_of_a_call(self):
        with serving(Silent) as (url, asked), Client(url, timeout=60) as client:
            first = [threading.Thread(target=client.job, args=("one",)) for _ in range(3)]
            for thread in first:
                thread.start()
            for thread in first:
                thread.join(60)
            self.assertEqual(len(client._transport._idle), 3)
            asked.clear()
            Silent.silent.set()
            self.addCleanup(Silent.over.set)
            client._timeout = 0.5
            with self.assertRaisesRegex(ConnectionFailed, "timed out"):
                client.job("one")
            self.assertEqual(len(asked), 1)
            Silent.over.set()

    def test_a_wait_that_is_cancelled_leaves_its_thread_to_others(self):
        async def enqueue(url, asked):
            async with AsyncClient(url, calls=1) as client:
                waiting = asyncio.create_task(client.result("one"))
                while not asked:
                    await asyncio.sleep(0.01)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                return await asyncio.wait_for(client.enqueue("q", 1), 30)

        with serving(Waits) as (url, asked):
            try:
                self.assertEqual(asyncio.run(enqueue(url, asked)).id, "two")
            finally:
                Waits.over.set()

    def test_a_worker_waits_while_an_engine_runs_the_jobs_of_its_queue(self):
        stop, failures = threading.Event(), []

        def work(client):
            try:
                client.work("q", print, stop=stop)
            except Exception as error:
                failures.append(error)

        with serving(Engined) as (url, asked), Client(url) as client, self.assertLogs("sluice_client", "WARNING") as logs:
            worker = threading.Thread(target=work, args=(client,))
            worker.start()
            while worker.is_alive() and [what for what, _ in list(asked)].count("claim") < 2:
                stop.wait(0.05)
            stop.set()
            worker.join(60)
        self.assertEqual((worker.is_alive(), failures), (False, []))
        self.assertIn("an engine runs its jobs", "".join(logs.output))

    def test_an_unexpected_error_of_a_thread_ends_the_worker(self):
        async def work(url):
            async with AsyncClient(url) as client:
                await asyncio.wait_for(client.work("q", print), 60)

        def sync(url, stop):
            with Client(url) as client:
                client.work("q", print, stop=stop)

        stop = threading.Event()
        watch = threading.Timer(60, stop.set)
        watch.start()
        self.addCleanup(watch.cancel)
        with serving(Strange) as (url, _), self.assertLogs("sluice_client", "ERROR") as logs:
            for call in (lambda: sync(url, stop), lambda: asyncio.run(work(url))):
                with self.assertRaisesRegex(TypeError, "not subscriptable"):
                    call()
        self.assertIn("the worker ends, because its thread sluice_claim failed", "".join(logs.output))
