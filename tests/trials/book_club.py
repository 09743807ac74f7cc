"""A book club on Flask that writes to its members, without a line of asyncio.

Written from README.md and docs/sync.md alone, as a team would.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

from flask import Flask, request
from flask.typing import ResponseReturnValue

from outreach import CampaignStatus, NewRecipient, NewSmsCampaign
from outreach.errors import CannotStart
from outreach.events import CampaignStatusChanged
from outreach.sync import Outreach

MEMBERS = 41


def make_app(directory: Path, engine: Outreach) -> Flask:
    app = Flask("book_club")
    database = directory / "club.db"
    with closing(sqlite3.connect(database)) as club, club:
        club.execute("CREATE TABLE members (phone TEXT, name TEXT)")
        members = [(f"+1415555{number:04}", f"Member {number}") for number in range(100, 100 + MEMBERS)]
        club.executemany("INSERT INTO members VALUES (?, ?)", members)
    workspace = engine.workspaces.create("Book club", default_region="US").id

    def people() -> Iterator[NewRecipient]:
        with closing(sqlite3.connect(database)) as club:
            for phone, name in club.execute("SELECT phone, name FROM members"):
                yield NewRecipient(phone_number=phone, first_name=name)

    @app.post("/invitations")
    def invite() -> ResponseReturnValue:
        given = request.get_json()
        campaign = NewSmsCampaign(
            name=given["title"], body=given["text"], carrier="twilio", from_number="+14155550199", rate_per_minute=400
        )
        key = request.headers.get("Idempotency-Key")
        made = engine.campaigns.create_sms(workspace, campaign, people(), idempotency_key=key)
        try:
            engine.campaigns.start(workspace, made.campaign.id)
        except CannotStart as error:
            return {"error": [detail.message for detail in error.details], "text": given["text"]}, 400
        total = made.campaign.counters.total
        return {"id": made.campaign.id, "invited": total, "left_out": made.opted_out_excluded}, 201

    @app.post("/invitations/<campaign>/<action>")
    def steer(campaign: str, action: str) -> ResponseReturnValue:
        steer = {"pause": engine.campaigns.pause, "resume": engine.campaigns.resume}[action]
        return {"status": steer(workspace, campaign).status}

    @app.delete("/members/<phone>")
    def leave(phone: str) -> ResponseReturnValue:
        engine.unsubscribes.add(workspace, phone)
        return "", 204

    return app


def main(directory: Path) -> None:
    with Outreach.open(f"sqlite:///{directory / 'outreach.db'}", dispatch=True) as engine:
        club = make_app(directory, engine).test_client()
        assert club.delete("/members/+14155550100").status_code == 204
        letter = {"title": "May", "text": "Hi {{first_name}}, we read Emma in May."}
        with engine.events.subscribe(CampaignStatusChanged) as stream:
            first = club.post("/invitations", json=letter, headers={"Idempotency-Key": "may"}).get_json()
            print(f"invited: {first['invited']}, left out: {first['left_out']}")
            seen: list[str] = []
            thread = Thread(
                target=lambda: seen.extend(
                    club.post(f"/invitations/{first['id']}/{action}").get_json()["status"]
                    for action in ("pause", "resume")
                )
            )
            thread.start()
            thread.join()
            print("paused and resumed:", *seen)
            other = NewSmsCampaign(name="June", body="Hi", carrier="twilio", from_number="+14155550199")
            workspace = engine.workspaces.list()[0].id
            ada = [NewRecipient(phone_number="+14155550102", first_name="Ada")]
            twice = {
                engine.campaigns.create_sms(workspace, other, ada, idempotency_key="june").campaign.id for _ in range(2)
            }
            print("twice with one key:", len(twice) == 1)
            wrong = club.post("/invitations", json={"title": "July", "text": "Hi {{nickname}}"})
            print("refused:", wrong.status_code, wrong.get_json()["text"])
            for event in stream:
                if event.campaign_id == first["id"] and event.status == CampaignStatus.COMPLETED:
                    break
        ended = engine.campaigns.get(workspace, first["id"])
        print(f"ended: {ended.status}, {ended.counters.successful} of {ended.counters.total}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
