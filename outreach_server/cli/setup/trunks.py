"""`trunks`: the SIP trunks of calling campaigns."""

from __future__ import annotations

import click

from outreach import NewTrunk, TrunkUpdate
from outreach_server.cli.base import Group
from outreach_server.cli.resources import ClearOption, ResourceCommands, name_argument
from outreach_server.cli.values import NAME

_TRUNKS = ResourceCommands("trunk", lambda engine: engine.trunks)
_PROVIDER_ID = click.Option(["--provider-trunk-id"], metavar="ID", help="Its identifier at the voice provider.")


def _address(*, required: bool) -> click.Option:
    return click.Option(["--address"], type=NAME, required=required, help="SIP host or URI at which the trunk ends.")


trunks = Group(
    "trunks",
    help="Create, change, remove and list SIP trunks.",
    commands=[
        _TRUNKS.create(NewTrunk, "Create a trunk called NAME.", name_argument(), _address(required=True), _PROVIDER_ID),
        _TRUNKS.list("id", "name", "address", "provider_trunk_id", "created_at", empty="The workspace has no trunks."),
        _TRUNKS.update(
            TrunkUpdate,
            "Change a trunk, for calls placed from then on.",
            click.Option(["--name"], type=NAME, help="A new name."),
            _address(required=False),
            _PROVIDER_ID,
            ClearOption("provider_trunk_id", "Forget that identifier."),
        ),
        _TRUNKS.remove("Remove a trunk, unless a campaign or a number uses it."),
    ],
)
