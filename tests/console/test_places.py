"""The list of pages, from which tests take what they open, has every page."""

from __future__ import annotations

from collections import defaultdict

from starlette.requests import Request
from starlette.routing import Route

from outreach import Outreach
from outreach_server.console import ConsoleUser
from outreach_server.console.app import build
from outreach_server.console.pages.set_up.every import NOUNS
from tests.console.places import NO_PAGES, OF_SET_UP, PUBLIC, every_page


def test_every_page_is_in_the_list() -> None:
    """Under the name of its route, which has its addresses; a page that is new is added to its group."""
    engine = Outreach.open("memory://")

    async def nobody(request: Request) -> ConsoleUser | None:
        return None

    app = build(get_engine=lambda: engine, identify=nobody, actor_kind="user", has_login=True)
    routes = {one.name: one for one in app.routes if isinstance(one, Route)}
    listed = {name for name, _ in every_page(files=True)}
    assert listed | set(PUBLIC) | NO_PAGES == set(routes)
    public = [(name, path) for name, paths in PUBLIC.items() for path in paths]
    wrong = []
    for name, path in (*every_page(files=True), *public):
        below = path.partition("?")[0].format_map(defaultdict(lambda: "1"))
        if not routes[name].path_regex.match(below if below.startswith("/") else f"/w/w/{below}"):
            wrong.append((name, path))
    assert wrong == []


def test_the_group_of_the_set_up_is_that_of_its_nouns() -> None:
    """So that the tests of nouns have all of it."""
    many = {f"{one.name}-one" for one in NOUNS if one.shape == "many"}
    assert set(OF_SET_UP) == {one.name for one in NOUNS} | many
