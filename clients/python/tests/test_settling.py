"""Outcomes that cannot be sent as they are."""

import json
import unittest
from datetime import timedelta

from sluice_client import PermanentError, RetryError, SnoozeError
from sluice_client._held import outcome

HALF = b"caf\xe9".decode(errors="surrogateescape")  # as os.listdir reads the name of a file


class Silent(Exception):
    def __str__(self):
        return self.args[9]


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


if __name__ == "__main__":
    unittest.main()
