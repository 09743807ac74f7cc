from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing

from flask import Flask, g, request
from flask.typing import ResponseReturnValue

from outreach import InvalidRequest, NewMessage, NewRecipient, NewSmsCampaign, NewWorkspace
from outreach.events import MessageStatusChanged, RecipientEnded
from outreach.sync import Outreach

SHOP = os.environ.get("SHOP_DATABASE", "shop.db")
SENDER = "+14155550199"
TABLES = """
    create table orders (number text primary key, name text not null, phone text not null);
    create table sms_events (number integer primary key, what text not null, status text not null);
    create table workspace (id text not null);
"""

app = Flask(__name__)

# Opened by the first call, in each process by itself, and closed as the process exits.
engine = Outreach.open(os.environ.get("OUTREACH_DATABASE_URL", "sqlite:///outreach.db"), dispatch=True)


@app.cli.command("init")
def init() -> None:
    """Make the shop's tables, and its workspace in the engine: `flask --app flask_shop.shop init`."""
    with closing(sqlite3.connect(SHOP)) as connection, connection:
        connection.executescript(TABLES)
        workspace = engine.workspaces.create(NewWorkspace(name="Shop", default_region="US"))
        connection.execute("insert into workspace values (?)", [workspace.id])


def shop() -> sqlite3.Connection:
    """Return this request's connection to the shop's own database."""
    if "shop" not in g:
        g.shop = sqlite3.connect(SHOP)
    connection: sqlite3.Connection = g.shop
    return connection


@app.teardown_appcontext
def close_shop(_: BaseException | None) -> None:
    if "shop" in g:
        g.shop.close()


def workspace_id() -> str:
    (found,) = shop().execute("select id from workspace").fetchone()
    return str(found)


@app.post("/orders")
def order() -> ResponseReturnValue:
    """Take an order, and confirm it by SMS: once, also where the request is repeated."""
    given = request.get_json()
    confirmation = NewMessage(
        to=given["phone"], body=f"Thank you, {given['name']}!", from_number=SENDER, carrier="twilio"
    )
    with shop() as connection:
        connection.execute("insert or ignore into orders values (:number, :name, :phone)", given)
        message = engine.messages.send(workspace_id(), confirmation, idempotency_key=f"order-{given['number']}")
    return {"message": message.id}, 201


@app.post("/campaigns")
def campaign() -> ResponseReturnValue:
    """Text everybody who has ordered."""
    new = NewSmsCampaign(name="News", body=request.get_json()["text"], carrier="twilio", from_number=SENDER)
    created = engine.campaigns.create_sms(workspace_id(), new, customers())
    started = engine.campaigns.start(workspace_id(), created.campaign.id)
    return {"campaign": started.id, "recipients": started.counters.total}, 201


def customers() -> Iterator[NewRecipient]:
    """Yield the customers, row by row: the engine draws them in the thread of the request."""
    for phone, name in shop().execute("select phone, max(name) from orders group by phone"):
        yield NewRecipient(phone_number=phone, first_name=name)


@app.get("/events")
def events() -> ResponseReturnValue:
    return [list(row) for row in shop().execute("select number, what, status from sms_events order by number")]


@app.errorhandler(InvalidRequest)
def refused(error: InvalidRequest) -> ResponseReturnValue:
    return {"error": error.message}, 400


def record_events() -> None:
    """Keep what becomes of messages in the shop's own table, from where it ends; return when the engine is closed."""
    with closing(sqlite3.connect(SHOP)) as connection:
        (last,) = connection.execute("select coalesce(max(number), 0) from sms_events").fetchone()
        with engine.events.subscribe(MessageStatusChanged, RecipientEnded, since=last) as stream:
            for event in stream:
                row = (event.number, type(event).__name__, event.status)
                # Several processes may listen: the number of an event tells it from all others.
                with connection:
                    connection.execute("insert or ignore into sms_events values (?, ?, ?)", row)


def start() -> None:
    """Open the engine, and begin to record events: once in each process that serves, after it was forked."""
    engine.start()
    threading.Thread(target=record_events, name="sms events").start()
