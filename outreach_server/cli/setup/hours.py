"""The option of opening hours: `mon-fri 09:00-17:00`."""

from __future__ import annotations

from typing import Any

import click

from outreach_server.hours import Opening, WrongHours, read_opening


class OpeningHours(click.ParamType[Opening]):
    """Days and a window of local time; one that ends before it starts runs into the next day."""

    name = "hours"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Opening:
        """Return the parsed opening hours."""
        if isinstance(value, Opening):
            return value
        try:
            return read_opening(str(value))
        except WrongHours as error:
            self.fail(str(error), param, ctx)
