"""Sends mails: `python mail.py enqueue ada` and `python mail.py work`."""

import sys

from sluice_client import Client, PermanentError, RetryError


def send(job):
    to = job.payload["to"]
    if "@" in to and to.endswith("@"):
        raise PermanentError(f"{to} is no address")  # another attempt would fail too
    if job.payload.get("busy", 0) >= job.attempt:
        raise RetryError("the mail server is busy", after=0.1)
    job.progress(0.5, "connected")
    return {"sent_to": to}


def main(command, *words):
    with Client() as client:
        if command == "enqueue":
            receipt = client.enqueue("mail", {"to": words[0]}, key=f"welcome:{words[0]}", labels={"kind": "welcome"})
            print(client.result(receipt.id, timeout=30))
        else:
            client.work("mail", send)


if __name__ == "__main__":
    main(*sys.argv[1:])
