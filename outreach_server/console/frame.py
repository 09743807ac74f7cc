"""The frame of every page: the name, the menu and the notices, as values for the templates."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from outreach_server.console.look import Look
from outreach_server.console.words import Tone


@attrs.frozen(kw_only=True)
class Link:
    """A link of the menu.

    Attributes:
        count: How many things wait there; 0 shows nothing.
    """

    name: str
    icon: str
    url: str
    current: bool = False
    count: int = 0


@attrs.frozen(kw_only=True)
class Notice:
    """Something that a person has to know on every page.

    Attributes:
        command: The command that ends it; empty if nothing has to be done.
    """

    tone: Tone
    text: str
    command: str = ""


@attrs.frozen(kw_only=True)
class KeyView:
    """A key in the list of keys.

    Attributes:
        keys: The keys to press one after the other, with spaces between them.
        text: Their effect.
        url: Where they lead; empty for those that the script obeys by itself.
    """

    keys: str
    text: str
    url: str = ""


@attrs.frozen(kw_only=True)
class Frame:
    """The parts around the content of a page.

    Attributes:
        title: The title of the page; it goes to the browser's history, so it holds no number.
        product: The console's own title.
        home_url: The first page.
        person: The name of the person; empty if nobody is signed in.
        sign_out_url: Where the person signs out; empty if the host has no such address.
        account_url: The page of the person's own account; where the host has the accounts, that of the look.
        workspace: The name of the workspace; empty outside of one.
        all_workspaces_url: The list of the person's workspaces; empty if there is only one.
        sandbox: Whether nothing reaches a phone.
        menu: The links at the side.
        notices: The notices above the content.
        token: The token of the forms.
        live: Whether the page changes by itself, so that it is loaded again where no script runs.
        look: The person's choices for this browser.
        search_url: Where the search is; empty outside of a workspace.
        searched: The text that was searched.
        keys: The single keys; empty where the person has switched them off.
    """

    title: str
    product: str
    home_url: str
    person: str = ""
    sign_out_url: str = ""
    account_url: str = ""
    workspace: str = ""
    all_workspaces_url: str = ""
    sandbox: bool = False
    menu: Sequence[Link] = ()
    notices: Sequence[Notice] = ()
    token: str = attrs.field(default="", repr=False)
    live: bool = False
    look: Look = attrs.field(factory=Look)
    search_url: str = ""
    searched: str = ""
    keys: Sequence[KeyView] = ()
