"""The page of the commands, from what `--help` shows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from outreach_server.cli import main
from outreach_server.cli.setup.setting_flags import SettingOption
from tests.reference.markdown import page, plain, table

_COMMON = ("--config", "--database", "--json")


def commands_page() -> str:
    """Return the page: each command with its purpose, arguments and options."""
    parts = []
    for path, command in _commands(main, ()):
        context = click.Context(command, info_name=" ".join(path))
        options = [
            record
            for param in command.get_params(context)
            if isinstance(param, click.Option) and not isinstance(param, SettingOption)
            and not {*_COMMON, "--help"} & set(param.opts)
            and (record := param.get_help_record(context))
        ]  # fmt: skip
        usage = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        parts.append(f"## {' '.join(path)}")
        parts.append(f"```text\n{' '.join(['outreach-server', *path, '[OPTIONS]', *usage])}\n```")
        parts += [_paragraph(text) for text in inspect.cleandoc(command.help or "").split("\n\n")]
        if options:
            parts.append(table(["Option", ""], [(f"`{option}`", plain(text)) for option, text in options]))
        if any(isinstance(param, SettingOption) for param in command.params):
            parts.append("Every flag of [a setting](settings.md) that concerns it is an option too.")
    shared = [
        (f"`{option.opts[0]}`", plain(option.help or ""))
        for option in main.params
        if isinstance(option, click.Option) and set(option.opts) & set(_COMMON)
    ]
    return page(
        "Commands",
        "Every command of `outreach-server`, as its `--help` describes it. [cli.md](../cli.md) says what they have in "
        "common.\n\nAll take these options, before or after the command's name; `demo` and `sandbox` make a database "
        "of their own and take no `--database`:",
        table(["Option", ""], shared),
        *parts,
    )


def _paragraph(text: str) -> str:
    """Return a paragraph of a help text; one that click leaves as it is keeps its lines."""
    return f"```text\n{text[2:]}\n```" if text.startswith("\b") else plain(text)


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _commands(child, (*path, name))
    else:
        yield path, command
