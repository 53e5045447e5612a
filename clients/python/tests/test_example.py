"""The example and the README, run as users run them."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from sluice_client import Client

ROOT = pathlib.Path(__file__).parent.parent


class Example(unittest.TestCase):
    def test_the_example_sends_a_mail(self):
        worker = subprocess.Popen([sys.executable, str(ROOT / "examples/mail.py"), "work"])
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        out = subprocess.run([sys.executable, str(ROOT / "examples/mail.py"), "enqueue", "ada@example.com"], capture_output=True, text=True, timeout=60)
        self.assertEqual((out.stdout.strip(), out.returncode), ("{'sent_to': 'ada@example.com'}", 0), out.stderr)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0)

    def test_the_readme_runs(self):
        code = "".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S))
        code = code.replace('"mail"', '"readme"').replace("\n\n\ndef send", "\nprint(receipt.id, flush=True)\n\n\ndef send", 1)
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        id = program.stdout.readline().strip()
        with Client() as client:
            self.assertEqual(client.result(id, timeout=60), {"sent_to": "ada"})
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(60), 0)

    def test_the_guide_runs(self):
        """All code of the guide, in order. A worker gets SIGTERM again and again, so that each ends soon."""
        guide = (ROOT / "../../docs/guide/python.md").read_text()
        code = "\n".join(re.findall(r"```python\n(.*?)```", guide, re.S))
        self.assertGreater(code.count("client.work("), 2)
        code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + code + "\nprint('the end')"
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        patience = 10  # the first worker has a job to do before it ends, on a busy machine too
        while True:
            try:
                out, _ = program.communicate(timeout=patience)
                break
            except subprocess.TimeoutExpired:
                program.send_signal(signal.SIGTERM)
                patience = 3
        self.assertEqual(program.returncode, 0)
        self.assertEqual(out.splitlines()[-1:], ["the end"])
        self.assertIn("{'sent_to': 'ada'}", out)


if __name__ == "__main__":
    unittest.main()
