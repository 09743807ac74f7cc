"""The page at /docs: openapi.yaml for people, rendered here, with nothing fetched from anywhere."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any, Final

import attrs
import yaml

from outreach_server.contract import contract_text
from outreach_server.prose import inline, prose

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_MOST_WORDS: Final = 12
_JSON: Final = "application/json"


@attrs.frozen(kw_only=True)
class DocsPage:
    """The page.

    Attributes:
        policy: Content-Security-Policy that allows this page's own style and script, and nothing else.
    """

    html: str
    policy: str


@functools.cache
def docs_page() -> DocsPage:
    """Return the page; it is made once."""
    pages = resources.files(__package__) / "pages"
    style = (pages / "docs.css").read_text("utf-8")
    script = (pages / "docs.js").read_text("utf-8")
    contract = yaml.load(contract_text(), Loader=_loader())  # noqa: S506 - a safe loader
    html = (
        (pages / "docs.html")
        .read_text("utf-8")
        .replace("{{style}}", style)
        .replace("{{script}}", script)
        .replace("{{title}}", escape(contract["info"]["title"]))
        .replace("{{navigation}}", "".join(_Renderer(contract).navigation()))
        .replace("{{content}}", "".join(_Renderer(contract).content()))
    )
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    return DocsPage(html=html, policy=policy)


def _loader() -> type[yaml.SafeLoader]:
    """Return a loader that leaves dates as they are written."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class _Renderer:
    """Turn the contract into HTML."""

    def __init__(self, contract: Mapping[str, Any]) -> None:
        self._contract = contract

    def navigation(self) -> Iterator[str]:
        """Yield the list of links."""
        yield '<a href="#about">About</a>'
        for method, path, operation in self._operations():
            found_by = escape(f"{path} {operation['summary']}")
            yield (
                f'<a href="#{escape(operation["operationId"])}" data-search="{found_by}">'
                f'<span class="method {method}">{method.upper()}</span> <code>{escape(path)}</code></a>'
            )
        yield "<h2>Schemas</h2>"
        for name in self._contract["components"]["schemas"]:
            yield f'<a href="#schema-{escape(name)}" data-search="{escape(name)}">{escape(name)}</a>'

    def content(self) -> Iterator[str]:
        """Yield the sections."""
        info = self._contract["info"]
        yield f'<section id="about"><h1>{escape(info["title"])} <small>{escape(info["version"])}</small></h1>'
        yield f'{prose(info["description"])}<p><a href="openapi.yaml">openapi.yaml</a></p></section>'
        for method, path, operation in self._operations():
            yield from self._operation(method, path, operation)
        yield '<section id="schemas"><h1>Schemas</h1></section>'
        for name, schema in self._contract["components"]["schemas"].items():
            yield f'<section class="schema" id="schema-{escape(name)}"><h2>{escape(name)}</h2>'
            yield from self._schema(schema)
            yield "</section>"

    def _operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for path, item in self._contract["paths"].items():
            for method in _METHODS:
                if method in item:
                    yield method, path, item[method]

    def _operation(self, method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
        yield f'<section class="operation" id="{escape(operation["operationId"])}">'
        yield f'<h2><span class="method {method}">{method.upper()}</span> <code>{escape(path)}</code></h2>'
        yield f'<p class="summary">{escape(operation["summary"])}</p>{prose(operation["description"])}'
        parameters = [self._resolve(parameter) for parameter in operation.get("parameters", ())]
        if "x-idempotency-key" in operation:
            parameters.append(self._resolve(operation["x-idempotency-key"]))
        if parameters:
            yield "<h3>Parameters</h3>"
            yield from self._table(
                (
                    f"{p['name']} <small>in {p['in']}</small>",
                    p["schema"],
                    p.get("required", False),
                    p.get("description"),
                )
                for p in parameters
            )
        if "requestBody" in operation:
            yield "<h3>Body</h3>"
            yield from self._media(operation["requestBody"]["content"][_JSON])
        yield "<h3>Answers</h3>"
        for status, response in operation["responses"].items():
            yield from self._response(str(status), self._resolve(response))
        yield "</section>"

    def _response(self, status: str, response: Mapping[str, Any]) -> Iterator[str]:
        opened = " open" if status.startswith("2") else ""
        yield f'<details{opened}><summary><span class="status s{status[0]}">{status}</span> '
        yield f"{inline(response['description'].strip().splitlines()[0])}</summary>{prose(response['description'])}"
        headers = {name: self._resolve(header) for name, header in response.get("headers", {}).items()}
        if headers:
            yield "<h4>Headers</h4>"
            yield from self._table(
                (name, header["schema"], header.get("required", False), header.get("description"))
                for name, header in headers.items()
            )
        if _JSON in response.get("content", {}):
            yield from self._media(response["content"][_JSON])
        yield "</details>"

    def _media(self, media: Mapping[str, Any]) -> Iterator[str]:
        yield f"<p>{self._kind(media['schema'])}</p>"
        for name, example in media.get("examples", {}).items():
            shown = self._resolve(example)
            text = escape(json.dumps(shown["value"], indent=2, ensure_ascii=False))
            yield f'<details class="example"><summary>Example: {escape(shown.get("summary", name))}</summary>'
            yield f"<pre>{text}</pre></details>"

    def _schema(self, schema: Mapping[str, Any]) -> Iterator[str]:
        if schema.get("description"):
            yield prose(schema["description"])
        kind = self._kind(schema)
        if kind:
            yield f"<p>{kind}</p>"
        if "properties" in schema:
            required = schema.get("required", ())
            yield from self._table(
                (escape(name), part, name in required, part.get("description"))
                for name, part in schema["properties"].items()
            )
        for part in schema.get("allOf", ()):
            if "$ref" in part or "if" in part:
                yield f"<p>And: {self._condition(part)}</p>"
            else:
                yield from self._schema(part)

    def _condition(self, part: Mapping[str, Any]) -> str:
        if "$ref" in part:
            return self._kind(part)
        given = ", ".join(
            f"<code>{escape(name)}</code> is {self._kind(s)}" for name, s in part["if"]["properties"].items()
        )
        told = [
            f"{word} {', '.join(f'<code>{escape(name)}</code>' for name in part[key]['required'])}"
            for key, word in (("then", "required then:"), ("else", "required otherwise:"))
            if "required" in part.get(key, {})
        ]
        return f"when {given}: {'; '.join(told)}"

    def _table(self, rows: Any) -> Iterator[str]:
        yield '<table><thead><tr><th scope="col">Name</th><th scope="col">Type</th>'
        yield '<th scope="col">Meaning</th></tr></thead><tbody>'
        for name, schema, required, description in rows:
            mark = ' <span class="required">required</span>' if required else ""
            text = description or self._resolve(schema).get("description", "")
            yield f"<tr><td><code>{name}</code>{mark}</td><td>{self._kind(schema)}</td><td>{prose(text)}</td></tr>"
        yield "</tbody></table>"

    def _resolve(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in part:
            found: Any = self._contract
            for step in part["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            part = found
        return part

    def _kind(self, schema: Mapping[str, Any]) -> str:
        """Return a schema's type, with its bounds, on one line."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
        for joined, word in (("anyOf", "or"), ("oneOf", "or")):
            if joined in schema:
                return f" {word} ".join(filter(None, (self._kind(part) for part in schema[joined])))
        if "const" in schema:
            return f"<code>{escape(json.dumps(schema['const']))}</code>"
        if "enum" in schema:
            return self._words(schema["enum"])
        types = schema.get("type", [])
        words = " or ".join([types] if isinstance(types, str) else types)
        if "items" in schema:
            words += f" of {self._kind(schema['items'])}"
        return " ".join(filter(None, (words, *self._bounds(schema))))

    def _words(self, words: list[Any]) -> str:
        shown = ", ".join(
            f"<code>{escape('null' if word is None else str(word))}</code>" for word in words[:_MOST_WORDS]
        )
        rest = len(words) - _MOST_WORDS
        return f"one of {shown}" + (f" and {rest} more" if rest > 0 else "")

    def _bounds(self, schema: Mapping[str, Any]) -> Iterator[str]:
        if "format" in schema:
            yield f"({escape(schema['format'])})"
        for low, high, unit in (
            ("minimum", "maximum", ""),
            ("minLength", "maxLength", " characters"),
            ("minItems", "maxItems", " elements"),
        ):
            if low in schema and high in schema:
                yield f"<small>{schema[low]} to {schema[high]}{unit}</small>"
            elif low in schema:
                yield f"<small>at least {schema[low]}{unit}</small>"
            elif high in schema:
                yield f"<small>at most {schema[high]}{unit}</small>"
        if "pattern" in schema:
            yield f"<small>pattern <code>{escape(schema['pattern'])}</code></small>"
        if "default" in schema:
            yield f"<small>default <code>{escape(json.dumps(schema['default']))}</code></small>"
