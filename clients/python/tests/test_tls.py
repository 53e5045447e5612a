"""The client against a server that encrypts by a private authority, and knows programs by their certificates."""

import asyncio
import os
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import time
import unittest

from sluice_client import ApiError, AsyncClient, CertificateRefused, Client, new_id

URL, TOKEN, FOLDER = (os.environ.get(f"SLUICE_TLS_{name}", "") for name in ("URL", "TOKEN", "FOLDER"))
GUIDE = pathlib.Path(__file__).parent / "../../../docs/guide/secure.md"


def context(authority="authority", certificate=None):
    made = ssl.create_default_context(cafile=f"{FOLDER}/{authority}.pem")
    if certificate:
        made.load_cert_chain(f"{FOLDER}/{certificate}.pem", f"{FOLDER}/{certificate}-key.pem")
    return made


@unittest.skipUnless(URL, "clients_test.go starts a server that encrypts")
class TLS(unittest.TestCase):
    def setUp(self):
        # A client takes the token of the environment, and a server a token before a certificate.
        token = os.environ.pop("SLUICE_TOKEN", None)
        self.addCleanup(lambda: token and os.environ.update(SLUICE_TOKEN=token))

    def test_a_token_or_a_certificate_works(self):
        for name, token, ssl_context in (("token", TOKEN, context()), ("certificate", None, context(certificate="eu-worker"))):
            with self.subTest(name), Client(URL, token, ssl_context=ssl_context) as client:
                queue, stop = "tls-" + new_id()[-12:], threading.Event()
                worker = threading.Thread(target=client.work, args=(queue, lambda job: job.payload + 1), kwargs={"stop": stop})
                worker.start()
                try:
                    self.assertEqual([client.result(client.enqueue(queue, n).id, timeout=60) for n in range(3)], [1, 2, 3])
                finally:
                    stop.set()
                    worker.join()

    def test_asyncio_works(self):
        async def main():
            async with AsyncClient(URL, ssl_context=context(certificate="eu-worker")) as client:

                async def double(job):
                    return job.payload * 2

                queue = "tls-" + new_id()[-12:]
                worker = asyncio.create_task(client.work(queue, double))
                receipt = await client.enqueue(queue, 4)
                self.assertEqual(await client.result(receipt.id, timeout=60), 8)
                worker.cancel()

        asyncio.run(main())

    def test_a_certificate_that_one_side_refuses_is_told_at_once(self):
        for name, ssl_context, want in (
            ("no authority", None, "ssl.create_default_context\\(cafile=FILE\\)"),
            ("another authority", context("other"), "ssl.create_default_context\\(cafile=FILE\\)"),
            ("a foreign certificate", context(certificate="foreign"), "--tls-client-ca"),
            ("a certificate that has ended", context(certificate="ended"), "--tls-client-ca"),
        ):
            for verb, call in (("enqueue", lambda client: client.enqueue("q", 1)), ("work", lambda client: client.work("q", print))):
                with self.subTest(f"{verb} with {name}"), Client(URL, TOKEN, timeout=600, ssl_context=ssl_context) as client:
                    began = time.monotonic()
                    with self.assertRaisesRegex(CertificateRefused, want):
                        call(client)
                    self.assertLess(time.monotonic() - began, 300, "it was not told at once")
        with Client(URL, ssl_context=context()) as client, self.assertRaisesRegex(ApiError, "no certificate"):
            client.enqueue("q", 1)

    def test_the_guide_runs(self):
        code = "".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)).replace("https://jobs.example.com:7400", URL)
        code += "\nprint(client.job(client.enqueue('guide', 1).id).state)"
        out = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual((out.stdout, out.returncode), ("queued\n", 0), out.stderr)


if __name__ == "__main__":
    unittest.main()
