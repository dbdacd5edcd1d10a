"""Follows a run by the package httpx-sse, and closes the connection every few records: each record comes once.

In: SERVER, TOKEN, RUN. Out: the data of each record, a line each.
"""

import os
import sys

import httpx
from httpx_sse import connect_sse

CUTS = 20
url = f"{os.environ['SERVER']}/api/v1/runs/{os.environ['RUN']}/events"
headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
last, cuts, ended = "0", 0, False
with httpx.Client(timeout=60) as client:
    while not ended:
        with connect_sse(client, "GET", url, headers={**headers, "Last-Event-ID": last}) as source:
            if source.response.status_code == 204:
                break
            for event in source.iter_sse():
                if event.event == "end":
                    ended = True
                    break
                if event.event != "record":
                    continue
                print(event.data)
                last = event.id
                if cuts < CUTS and int(last.split("-")[0]) % 3 == 0:
                    cuts += 1
                    break
sys.exit(0 if cuts == CUTS else f"only {cuts} cuts")
