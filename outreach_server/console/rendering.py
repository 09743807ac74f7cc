"""Templates: read once, compiled when they are first used, escaped by themselves, with nothing undefined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import CodeType
from typing import Any, Final

from jinja2 import BytecodeCache, DictLoader, Environment, StrictUndefined, Template, TemplateError
from jinja2.bccache import Bucket
from jinja2.meta import find_referenced_templates

from outreach import ConfigError
from outreach_server.console import words
from outreach_server.console.absent import without_absent

_FOLDER: Final = "templates"
_BASE: Final = "base.html"
_CONSOLE: Final = "console.html"


class _CompiledTemplates(BytecodeCache):
    """The compiled templates of this process: each text is compiled once, however many consoles use it."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Set the code that the template was compiled to, if it was compiled before."""
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code that a template was compiled to."""
        if bucket.code is not None:
            self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED: Final = _CompiledTemplates()


class Templates:
    """All templates of the console.

    Args:
        base: The template that every page extends, in the place of the console's own, which is `console.html` then.

    Raises:
        ConfigError: The base is no template, or has no place for the content of a page.
    """

    def __init__(self, base: Path | None = None) -> None:
        texts = dict(_texts(resources.files("outreach_server.console") / _FOLDER))
        if base is not None:
            texts |= {_CONSOLE: texts[_BASE], _BASE: _text_of(base)}
        self._environment = Environment(
            loader=DictLoader(texts),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            bytecode_cache=_COMPILED,
        )
        self._environment.filters |= {
            "number": words.number,
            "share": words.share,
            "plural": words.plural,
            "visible": words.visible,
        }
        if base is not None:
            _check(self._environment, base)

    def names(self) -> Sequence[str]:
        """Return the names of all templates."""
        return self._environment.list_templates()

    def compiled(self, name: str) -> Template:
        """Return a template, which is compiled the first time: all of them at the start would take 0.25 s."""
        return self._environment.get_template(name)

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Return the text of a template with values."""
        return without_absent(self.compiled(name).render(values))


def _text_of(base: Path) -> str:
    try:
        return base.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"base_template {base} cannot be read: {error}") from error


def _check(environment: Environment, base: Path) -> None:
    try:
        template = environment.get_template(_BASE)
        source = environment.parse(_text_of(base))
    except TemplateError as error:
        raise ConfigError(f"base_template {base} is no Jinja template: {error}") from error
    if "content" not in template.blocks and _CONSOLE not in find_referenced_templates(source):
        raise ConfigError(
            f"base_template {base} has no place for the page: write {{% block content %}}{{% endblock %}} into it, or "
            f'begin it with {{% extends "{_CONSOLE}" %}}.'
        )


def _texts(folder: Traversable, before: str = "") -> list[tuple[str, str]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _texts(one, f"{before}{one.name}/")
        elif one.name.endswith(".html"):
            found.append((f"{before}{one.name}", one.read_text("utf-8")))
    return found
