"""The engine for synchronous code: Django, Flask, scripts.

    from outreach.sync import Outreach

    engine = Outreach.open("sqlite:///app.db", dispatch=True)
    engine.messages.send(workspace_id, NewMessage(to="+14155550102", body="Your order is on its way."))

It has the methods of `outreach.Outreach`, without `await`, for any thread; models and errors are those of `outreach`.
"""

from __future__ import annotations

from outreach.sync.calls import fail_after
from outreach.sync.services import Outreach
from outreach.sync.streams import EventStream, NamedStream

__all__ = ["EventStream", "NamedStream", "Outreach", "fail_after"]
