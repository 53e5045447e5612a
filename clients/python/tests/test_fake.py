"""The fake for users' tests needs no server."""

import asyncio
import unittest
from datetime import timedelta

from sluice_client import ApiError, JobFailed, PermanentError, RetryError, SnoozeError
from sluice_client.testing import FakeAsyncClient, FakeClient


class Fake(unittest.TestCase):
    def setUp(self):
        self.fake = FakeClient()

    def test_it_shows_what_was_enqueued(self):
        receipt = self.fake.enqueue("mail", {"to": "ada"}, tenant="acme", key="k")
        self.assertTrue(self.fake.enqueue("mail", {"to": "bob"}, key="k").duplicate)
        self.assertEqual([(j.id, j.queue, j.payload, j.options["tenant"]) for j in self.fake.jobs], [(receipt.id, "mail", {"to": "ada"}, "acme")])
        with self.assertRaisesRegex(ValueError, "key is empty"):
            FakeClient().enqueue("mail", 1, key="")
        with self.assertRaisesRegex(TypeError, "no option"):
            self.fake.enqueue("mail", 1, prio=1)

    def test_it_changes_no_job_of_another_tenant_that_has_the_key(self):
        first = self.fake.enqueue("mail", 1, key="k", tenant="acme")
        for rule in ("replace", "coalesce", "debounce"):
            job = {"queue": "mail", "payload": 2, "key": "k", "tenant": "globex", "on_duplicate": rule}
            with self.assertRaisesRegex(ApiError, "a job of another tenant holds"):
                self.fake.enqueue(**job)
            self.assertEqual([refused.index for refused in self.fake.enqueue_many([job]).refused], [0])
        self.assertEqual(self.fake.enqueue("mail", 2, key="k", tenant="globex").id, first.id)
        self.assertEqual([(job.state, job.payload) for job in self.fake.jobs], [("queued", 1)])

    def test_a_merged_job_expires_with_the_newest(self):
        soon, late = (self.fake.now + timedelta(minutes=m) for m in (1, 10))
        self.fake.enqueue("mail", 1, key="k", on_duplicate="coalesce", expires_at=soon)
        self.fake.enqueue("mail", 2, key="k", on_duplicate="coalesce", expires_at=late)
        self.assertEqual([(job.payload, job.options["expires_at"]) for job in self.fake.jobs], [(2, late)])
        self.fake.enqueue("mail", 3, key="k2", on_duplicate="coalesce", delay=3600)
        self.fake.enqueue("mail", 4, key="k2", on_duplicate="coalesce", expires_at=late)
        self.assertIsNone(self.fake.jobs[-1].options["expires_at"])

    def test_it_throttles_and_runs_merged_jobs_after_one_that_has_begun(self):
        start, seen = self.fake.now, []
        throttle = {"key": "t", "key_scope": "window", "key_window": 3600, "on_duplicate": "coalesce"}

        def handler(job):
            seen.append((job.payload, (self.fake.now - start).total_seconds()))
            if job.payload == 1:
                self.fake.enqueue("a", 2, **throttle)
                self.fake.enqueue("a", 3, **throttle)
            if job.payload == "first" and job.attempt == 1:
                self.fake.enqueue("a", "second", key="c", on_duplicate="coalesce")
                self.fake.enqueue("a", "third", key="c", on_duplicate="coalesce")
                raise OSError("again")

        self.fake.enqueue("a", 1, **throttle)
        self.fake.run(handler)
        self.fake.enqueue("a", "first", key="c", on_duplicate="coalesce")
        self.fake.run(handler)
        self.assertEqual(seen, [(1, 0), (3, 3600), ("first", 3600), ("first", 3602), ("third", 3602)])
        self.fake.enqueue("a", 1, key="w", key_scope="window", key_window=3600, delay=7200)
        self.fake.now += timedelta(seconds=5400)
        self.assertFalse(self.fake.enqueue("a", 2, key="w").duplicate, "its window has passed")

    def test_two_days_of_retries_take_no_time(self):
        began = self.fake.now
        receipt = self.fake.enqueue("mail", 1)

        def handler(job):
            if job.attempt < 16:
                raise OSError("no route")
            return job.attempt

        self.assertEqual(self.fake.run(handler), 16)
        self.assertEqual(self.fake.result(receipt.id), 16)
        self.assertGreater(self.fake.now - began, timedelta(hours=18))

    def test_errors_mean_what_they_mean_on_a_server(self):
        ids = {name: self.fake.enqueue("mail", name, max_attempts=3).id for name in ("permanent", "fails", "snooze", "checkpoint")}
        seen = []

        def handler(job):
            seen.append((job.payload, job.attempt))
            if job.payload == "permanent":
                raise PermanentError("no address")
            if job.payload == "fails":
                raise RetryError("busy", after=5)
            if job.payload == "snooze" and seen.count(("snooze", 1)) == 1:
                raise SnoozeError(60)
            if job.payload == "checkpoint" and job.attempt == 1:
                job.save_checkpoint({"page": 2})
                job.progress(0.5)
                raise ValueError("torn page")
            return job.checkpoint

        self.fake.run(handler)
        for name in ("permanent", "fails"):
            with self.assertRaises(JobFailed):
                self.fake.result(ids[name])
        self.assertEqual(seen.count(("fails", 3)), 1)
        self.assertEqual(seen.count(("snooze", 1)), 2)
        self.assertEqual(self.fake.result(ids["checkpoint"]), {"page": 2})
        self.assertEqual(self.fake.jobs[3].progress, [(0.5, "")])

    def test_coroutines_and_cancels(self):
        first, second = self.fake.enqueue("mail", 1, delay=10).id, self.fake.enqueue("mail", 2).id

        async def handler(job):
            await job.save_checkpoint("half")
            self.fake.cancel(first)
            return job.payload

        self.assertEqual(self.fake.run(handler), 1)
        self.assertEqual((self.fake.result(second), self.fake.job(second).checkpoint, self.fake.job(first).state), (2, "half", "cancelled"))


class FakeAsync(unittest.IsolatedAsyncioTestCase):
    async def test_it_does_for_coroutines_what_the_other_does(self):
        async with FakeAsyncClient(max_attempts=2) as fake:
            began = fake.now
            good = await fake.enqueue("mail", "good")
            out = await fake.enqueue_many({"queue": "mail", "payload": "bad", "key": key} for key in ("a", "b", "a"))
            self.assertEqual((out.stored, out.duplicates, len(fake.jobs)), (2, 1, 3))
            self.assertEqual(await fake.cancel(fake.jobs[2].id), 1)

            async def handler(job):
                await job.wait(0)
                await job.save_checkpoint({"page": 2})
                if job.payload == "bad":
                    raise RetryError("busy", after=60)
                return {"said": job.payload}

            self.assertEqual(await fake.run(handler), 3)
            self.assertEqual(await fake.result(good.id), {"said": "good"})
            self.assertEqual((await fake.job(good.id)).checkpoint, {"page": 2})
            with self.assertRaisesRegex(JobFailed, "busy"):
                await fake.result(fake.jobs[1].id)
            self.assertEqual(((await fake.job(fake.jobs[2].id)).state, fake.now - began), ("cancelled", timedelta(seconds=60)))


if __name__ == "__main__":
    unittest.main()
