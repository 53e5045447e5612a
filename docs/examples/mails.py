"""Sends mails. Run it with: sluice work mail --batch 100 --silence 30s -- python3 mails.py"""
import json
import sys


class NoSuchUser(Exception):
    pass


def send(to, attempt):  # your own work; here it only plays
    if to == "nobody":
        raise NoSuchUser("there is no such user")
    if to == "busy" and attempt == 1:
        raise OSError("451 try again")


def say(**answer):
    print(json.dumps(answer), flush=True)  # flush: each job is settled when its line comes


for line in sys.stdin:
    job = json.loads(line)
    sent = job.get("checkpoint") or 0
    try:
        for to in job["payload"]["to"][sent:]:
            send(to, job["attempt"])
            sent += 1
            say(id=job["id"], checkpoint=sent)  # the next attempt goes on here; a sign of life, too
        say(id=job["id"], result={"sent": sent})
    except NoSuchUser as error:
        say(id=job["id"], error=str(error), permanent=True)  # dead at once
    except Exception as error:
        say(id=job["id"], error=str(error))  # tried again after the queue's backoff
