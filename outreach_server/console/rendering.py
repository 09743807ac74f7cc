"""Templates: read and compiled once, escaped by themselves, with nothing undefined."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined

from outreach_server.console import words

_FOLDER: Final = "templates"


class Templates:
    """All templates of the console."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=DictLoader(dict(_texts(resources.files("outreach_server.console") / _FOLDER))),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "number": words.number,
            "share": words.share,
            "plural": words.plural,
            "visible": words.visible,
        }
        # A mistake in any of them shows at the start.
        self._known = {name: self._environment.get_template(name) for name in self._environment.list_templates()}

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Return the text of a template with values."""
        return self._known[name].render(values)


def _texts(folder: Traversable, before: str = "") -> list[tuple[str, str]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _texts(one, f"{before}{one.name}/")
        elif one.name.endswith(".html"):
            found.append((f"{before}{one.name}", one.read_text("utf-8")))
    return found
