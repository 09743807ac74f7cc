"""The contract as tests look things up in it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator

from outreach_server.contract import contract_bytes


def read_yaml(text: str) -> Any:
    """Read a document; with PyYAML's loader in C, for the one in Python takes seconds for the contract."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


DOCUMENT: Final[dict[str, Any]] = read_yaml(contract_bytes().decode())
SCHEMAS: Final[dict[str, Any]] = DOCUMENT["components"]["schemas"]
METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


def resolve(node: Any) -> Any:
    """Follow a reference within the document, as far as it leads; what stands beside it goes before what it names."""
    while isinstance(node, Mapping) and "$ref" in node:
        target: Any = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method in lower case and operation, in the order of the document."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield path, method, operation


def template_of(path: str) -> str | None:
    """Return the path of the document that a request's path is one of; None when it is none of them."""
    if path in DOCUMENT["paths"]:
        return path
    for template in DOCUMENT["paths"]:
        # A call's identifier may have slashes, the other ones have none.
        any_text = "(?s:.+)" if template == "/calls/{id}" else "[^/]+"
        pattern = "".join(
            any_text if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]+\})", template)
        )
        if "{" in template and re.fullmatch(pattern, path):
            return str(template)
    return None


@functools.cache
def validator_at(*place: str) -> Draft202012Validator:
    """Return a validator for the schema at a place of the document, formats included."""
    schema: Any = DOCUMENT
    for part in place:
        schema = resolve(schema[part])
    return Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
