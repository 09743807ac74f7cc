"""The needs of the engine outside it: a key, a public address, time zones, and senders that people can reply to."""

from __future__ import annotations

import ipaddress
import shlex
import zoneinfo
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio

from outreach.core.command_lines import pip_commands
from outreach.core.config import PUBLIC_URL_VARIABLE
from outreach.errors import Problem
from outreach.models.campaign import Campaign

RESOLVE_SECONDS: Final = 5.0

ZONES: Final = ("America/New_York", "Europe/Paris", "Asia/Tokyo")
"""Zones that every edition of the data has."""

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a host; raises `OSError` if it has none."""


async def resolve(host: str) -> Sequence[str]:
    """Return the addresses of a host, as this machine finds them."""
    return [str(found[4][0]) for found in await anyio.getaddrinfo(host, 443)]


def of_key_file(exposed: Path | None) -> Iterator[Problem]:
    """Yield that the key file beside the database is refused, because others may read it.

    Args:
        exposed: That file; None where the key comes from elsewhere, or no other user may read it.
    """
    if exposed is not None:
        yield Problem(
            code="key_exposed",
            severity="critical",
            message=(
                f"Others may read the key {str(exposed)!r}, which is refused therefore: no account can be used with it."
            ),
            path=str(exposed),
            commands=[f"chmod 600 {shlex.quote(str(exposed))}"],
        )


async def of_public_url(url: str | None, *, resolve: Resolve | None) -> Sequence[Problem]:
    """Return what is wrong with the address that providers call back.

    Args:
        url: The address; None if none is set.
        resolve: Finds the addresses of a host; None without the network.
    """
    setting = "outreach-server config"
    if url is None:
        return [
            Problem(
                code="public_url_missing",
                severity="warning",
                message=(
                    f"Live accounts are connected, and {PUBLIC_URL_VARIABLE} is not set: no receipt, no reply and no "
                    "STOP comes in, but for what is polled. Set it for every server and for this command."
                ),
                path=PUBLIC_URL_VARIABLE,
                commands=[f"export {PUBLIC_URL_VARIABLE}=https://outreach.example.com"],
                looks=[setting],
            )
        ]
    host = urlsplit(url).hostname or ""
    try:
        addresses = [str(ipaddress.ip_address(host))]
    except ValueError:
        if host == "localhost":
            addresses = ["127.0.0.1"]
        elif resolve is None:
            return []
        else:
            found = await _resolved(host, resolve)
            if found is None:
                return [
                    Problem(
                        code="public_url_unresolvable",
                        severity="warning",
                        message=f"The public address {url} has a host that this machine cannot resolve: {host}.",
                        path=url,
                        looks=[f"getent ahosts {shlex.quote(host)}"],
                    )
                ]
            addresses = list(found)
    if any(ipaddress.ip_address(address.partition("%")[0]).is_global for address in addresses):
        return []
    return [
        Problem(
            code="public_url_local",
            severity="warning",
            message=f"The public address {url} leads to {addresses[0]}, which no provider can reach.",
            path=url,
            commands=[f"export {PUBLIC_URL_VARIABLE}=https://outreach.example.com"],
            looks=[setting],
        )
    ]


async def _resolved(host: str, resolve: Resolve) -> Sequence[str] | None:
    with anyio.move_on_after(RESOLVE_SECONDS):
        try:
            return await resolve(host) or None
        except OSError:
            return None
    return None


def of_time_zones(zones: Sequence[str] = ZONES) -> Iterator[Problem]:
    """Yield that the data of time zones are missing."""
    for name in zones:
        try:
            # Not one that was loaded before.
            zoneinfo.ZoneInfo.no_cache(name)
        except (KeyError, OSError, ValueError) as error:
            yield Problem(
                code="time_zones_missing",
                severity="critical",
                message=(
                    f"The time zone {name} cannot be read ({type(error).__name__}): business hours and contact hours "
                    "cannot be judged."
                ),
                path="the package tzdata",
                # Python reads the system's data where the package has none.
                commands=[
                    *pip_commands("install", "--upgrade", "--force-reinstall", "tzdata"),
                    "sudo apt-get install --reinstall tzdata",
                ],
            )
            return


def of_senders(campaigns: Sequence[Campaign]) -> Iterator[Problem]:
    """Yield the campaigns to which nobody can reply."""
    for campaign in campaigns:
        yield Problem(
            code="sender_takes_no_replies",
            severity="info",
            message=(
                f"Campaign {campaign.name!r} sends as {campaign.from_number!r}, to which nobody can reply: no STOP can "
                "come back. Tell people another way to opt out, and add their numbers to the register."
            ),
            path=f"campaign {campaign.id}",
            workspace_id=campaign.workspace_id,
            commands=[f"outreach-server unsubscribes import {campaign.workspace_id} FILE"],
        )
