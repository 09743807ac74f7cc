"""Write `outreach/sync/services.py` from the asynchronous services: `python -m tests.sync.generate`, or `make sync`.

Each public method of a service becomes one without `await`: an asynchronous iterator becomes an iterator, a stream of
events one that blocks. Signatures and docstrings are copied from the source, so that type checkers see the same types;
mypy checks the bodies, which call the asynchronous methods.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from outreach import Outreach

TARGET: Final = Path(__file__).resolve().parents[2] / "outreach" / "sync" / "services.py"

NOT_FOR_CALLERS: Final = frozenset({"open", "close"})
"""Methods of services that the engine calls as it opens and closes."""

HEAD: Final = '''\
"""The engine and its services for synchronous code, written by tests/sync/generate.py: do not edit.

`make sync` writes this file anew after a change of an asynchronous service.
"""

from __future__ import annotations

'''

ENGINE: Final = """The engine for synchronous code: Django, Flask, scripts.

    It runs on an event loop in a thread of its own, and any thread may call it. Make one for each process, as a global
    of your program or as a context manager:

        engine = Outreach.open("sqlite:///app.db", dispatch=True)
        workspace = engine.workspaces.create(NewWorkspace(name="Acme"))

    The first call opens it, or `start`; the exit of the interpreter closes it, or `close`. A process that is forked
    before the first call opens it anew; one that is forked while it is open gets a `ConfigError`. Calls wait for as
    long as they take, or as `fail_after` gives them.

    """
OPEN: Final = "Return an engine over the database that a URL names; the first call, or `start`, opens it."

_PLAIN: Final = {"AsyncIterable": "Iterable", "AsyncIterator": "Iterator"}
_WORDS: Final = (("async with", "with"), ("async for", "for"), ("await ", ""), ("entering it", "opening it"))

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Names:
    """What the file imports, and the types that it defines anew because they name asynchronous iterables."""

    def __init__(self) -> None:
        self.imports: dict[str, str] = {}
        self.aliases: dict[str, str] = {}

    def add(self, module: str, name: str, alias: str | None = None) -> None:
        """Import a name of a module; a module itself where that is empty.

        Raises:
            ValueError: Another thing has that name already.
        """
        line = (f"from {module} " if module else "") + f"import {name}" + (f" as {alias}" if alias else "")
        if self.imports.setdefault(alias or name, line) != line:
            raise ValueError(f"{alias or name} is two things: {line}; {self.imports[alias or name]}")


class Source(ast.NodeTransformer):
    """The module of an asynchronous class; as a transformer, it makes the types of a signature synchronous.

    Args:
        module: The module's name.
        names: Where to what a type needs is written.
        types: The types that stand for the parameters of a generic class, by the names of these.
    """

    def __init__(self, module: str, names: Names, types: Mapping[str, type[Any]] | None = None) -> None:
        self._module = module
        self._names = names
        self._types = types or {}
        self._tree = ast.parse(inspect.getsource(sys.modules[module]))
        self._found = dict(_found(self._tree, module))

    def cls(self, name: str) -> ast.ClassDef:
        """Return a class of the module."""
        return next(node for node in self._tree.body if isinstance(node, ast.ClassDef) and node.name == name)

    def is_drawn(self, annotation: ast.expr | None) -> bool:
        """Tell whether a parameter takes an asynchronous iterable."""
        parts = [part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)] if annotation else []
        return any(part == "AsyncIterable" or self._alias(part) for part in parts)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Import a name that a type or a default needs; name the synchronous type instead."""
        name = node.id
        if name in self._types:
            kind = self._types[name]
            self._names.add(kind.__module__, kind.__name__)
            return ast.Name(kind.__name__)
        alias = self._alias(name)
        if alias is not None:
            if name not in self._names.aliases:
                module, value = alias
                value = Source(module, self._names).visit(value)
                self._names.aliases[name] = f"{name} = {ast.unparse(value)}"
        elif name in _PLAIN:
            self._names.add("collections.abc", _PLAIN[name])
            return ast.Name(_PLAIN[name])
        elif name in {"EventStream", "NamedStream"}:
            self._names.add("outreach.sync.streams", name)
        elif name in self._found:
            self._names.add(*self._found[name])
        elif not hasattr(builtins, name):
            raise ValueError(f"{name} in {self._module} comes from nowhere.")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Write a union of what has become the same once."""
        self.generic_visit(node)
        return node.left if ast.unparse(node.left) == ast.unparse(node.right) else node

    def _alias(self, name: str) -> tuple[str, ast.expr] | None:
        """Return the module and the value of a type of ours that names asynchronous iterables."""
        module, original = self._found.get(name, ("", ""))
        if not module.startswith("outreach."):
            return None
        for node in ast.parse(inspect.getsource(sys.modules[module])).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == original:
                    return (module, value) if "AsyncIterable" in ast.unparse(value) else None
        return None


def generated() -> str:
    """Return what the file has to hold."""
    names = Names()
    engine = vars(Outreach.open("memory://"))
    services: dict[str, type[Any]] = {
        name: type(service) for name, service in engine.items() if not name.startswith("_") and _waits(service)
    }
    names.add("outreach.sync.service", "Engine")
    names.add("outreach.sync.service", "Service")
    every: list[type[Any]] = [Outreach, *services.values()]
    for cls in every:
        names.add(cls.__module__, cls.__name__, f"Async{cls.__name__}")
    classes = [_service(cls, names) for cls in services.values()]
    classes.append(_engine(services, names))
    parts = [HEAD, *names.imports.values(), "", *names.aliases.values(), *map(ast.unparse, classes)]
    return _formatted("\n".join(parts))


def main() -> None:
    """Write the file."""
    TARGET.write_text(generated(), encoding="utf-8")


def _waits(service: object) -> bool:
    """Tell whether something that an engine has is a service: whether it can be waited for."""
    functions: list[Any] = [function for _, function in inspect.getmembers(type(service), inspect.isfunction)]
    returned = [str(inspect.signature(function).return_annotation) for function in functions]
    return any(map(inspect.iscoroutinefunction, functions)) or any(one.startswith("EventStream") for one in returned)


def _service(cls: type[Any], names: Names) -> ast.ClassDef:
    methods: dict[str, list[ast.stmt]] = {}
    for base in (one for one in cls.__mro__ if one.__module__.startswith("outreach.")):
        source = Source(base.__module__, names, _types(cls, base))
        inherited = {*methods}
        for function in _functions(source.cls(base.__name__)):
            public = not function.name.startswith("_") or function.name == "__call__"
            if public and function.name not in NOT_FOR_CALLERS and function.name not in inherited:
                # A generic class gives its methods to a subclass with docstrings of its own.
                text = getattr(cls, function.name).__doc__
                _reworded(function.body[0], lambda written, text=text: text or written)
                methods.setdefault(function.name, []).append(_method(source, function))
    for name, member in vars(cls).items():
        # A method of a part; what wraps it has the part's names.
        if (wrapped := getattr(member, "__wrapped__", None)) is not None:
            source = Source(wrapped.__module__, names)
            part = source.cls(wrapped.__qualname__.partition(".")[0])
            methods[name] = [_method(source, one) for one in _functions(part) if one.name == name]
    doc = _doc(Source(cls.__module__, names).cls(cls.__name__))
    body = [doc, *(function for functions in methods.values() for function in functions)]
    return _class(cls.__name__, f"Service[Async{cls.__name__}]", body)


def _types(cls: type[Any], base: type[Any]) -> Mapping[str, type[Any]]:
    """Return the types that a service gives its generic base, by the names of the parameters."""
    for definition in getattr(cls, "__orig_bases__", ()):
        if get_origin(definition) is base:
            return {one.__name__: kind for one, kind in zip(base.__parameters__, get_args(definition), strict=True)}
    return {}


def _engine(services: dict[str, type[Any]], names: Names) -> ast.ClassDef:
    source = Source(Outreach.__module__, names)
    node = source.cls(Outreach.__name__)
    functions = {function.name: function for function in _functions(node)}
    begin, opened = functions.pop("__init__"), functions.pop("open")
    serve = "\n".join(
        f"    self.{name} = {cls.__name__}(self._lifetime, lambda engine: engine.{name})"
        for name, cls in services.items()
    )
    begin.body = _parsed(f"super().__init__(AsyncOutreach({_passed(begin.args)}))")
    opened.body = [_doc(opened), *_parsed(f"return cls._over(AsyncOutreach.open({_passed(opened.args)}))")]
    _reworded(opened.body[0], lambda text: OPEN + text[text.index("\n") :])
    doc = _doc(node)
    _reworded(doc, lambda text: ENGINE + _attributes(text[text.index("Args:") :], services))
    body = [
        doc,
        _typed(source, begin),
        _typed(source, opened),
        *(_method(source, function) for name, function in functions.items() if not name.startswith("_")),
        *_parsed(f"def _serve(self) -> None:\n{serve}"),
    ]
    return _class("Outreach", "Engine", body)


def _method(source: Source, function: Function) -> ast.FunctionDef:
    """Return a method without `await`."""
    assert function.returns is not None
    drawn = [one.arg for one in _parameters(function.args) if source.is_drawn(one.annotation)]
    name = "" if function.name == "__call__" else f".{function.name}"
    call = f"service{name}({_passed(function.args, drawn)})"
    returned = ast.unparse(function.returns).partition("[")[0]
    if any(isinstance(one, ast.Name) and one.id == "overload" for one in function.decorator_list):
        body = _parsed("...")
    else:
        if returned == "EventStream":
            way = "_stream(lambda service:"
        elif returned == "AsyncIterator":
            way = "_items(lambda service:"
        elif isinstance(function, ast.FunctionDef):
            way = "_plain(lambda service:"
        elif drawn:
            way = "_supply(lambda service, each:"
        else:
            way = "_call(lambda service:"
        body = [_doc(function), *_parsed(f"return self.{way} {call})")]
    function.body = body
    return _typed(source, function)


def _typed(source: Source, function: Function) -> ast.FunctionDef:
    """Return a function with its signature for synchronous code."""
    function.args = source.visit(function.args)
    assert function.returns is not None
    returns = source.visit(function.returns)
    decorators = [source.visit(one) for one in function.decorator_list]
    (written,) = _parsed("def function() -> None: ...")
    assert isinstance(written, ast.FunctionDef)
    written.name, written.args, written.body = function.name, function.args, function.body
    written.decorator_list, written.returns = decorators, returns
    return written


def _passed(arguments: ast.arguments, drawn: Sequence[str] = ()) -> str:
    """Return the arguments with which a function passes its own on."""

    def value(name: str) -> str:
        return f"each({name})" if name in drawn else name

    positional = [value(one.arg) for one in (*arguments.posonlyargs, *arguments.args) if one.arg not in {"self", "cls"}]
    starred = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    return ", ".join([*positional, *starred, *(f"{one.arg}={value(one.arg)}" for one in arguments.kwonlyargs)])


def _parameters(arguments: ast.arguments) -> Sequence[ast.arg]:
    return (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)


def _functions(node: ast.ClassDef) -> Sequence[Function]:
    return [function for function in node.body if isinstance(function, Function)]


def _class(name: str, base: str, body: list[Any]) -> ast.ClassDef:
    (written,) = _parsed(f"class {name}({base}): ...")
    assert isinstance(written, ast.ClassDef)
    written.body = body
    return written


def _doc(node: Function | ast.ClassDef) -> ast.stmt:
    """Return the docstring of a function or a class, as it stands there but for words of asynchronous code."""
    first = node.body[0]

    def synchronous(text: str) -> str:
        for word, instead in _WORDS:
            text = text.replace(word, instead)
        return text

    _reworded(first, synchronous)
    return first


def _reworded(node: ast.stmt, change: Any) -> None:
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Constant)
    node.value.value = change(node.value.value)


def _attributes(text: str, services: Collection[str]) -> str:
    """Leave out the attributes that are no services."""
    begin, _, entries = text.partition("Attributes:\n")
    kept = [one for one in re.split(r"(?m)^(?=        \w+:)", entries) if one.strip().partition(":")[0] in services]
    return f"{begin}Attributes:\n{''.join(kept).rstrip()}\n    "


def _parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _found(tree: ast.Module, module: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield every name of a module, and from where it can be imported."""
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str(origin), names=imported):
                yield from ((one.asname or one.name, (origin, one.name)) for one in imported)
            case ast.Import(names=imported):
                yield from ((one.name, ("", one.name)) for one in imported)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, (module, name)
            case ast.ClassDef(name=name):
                yield name, (module, name)


def _formatted(text: str) -> str:
    """Return Python as ruff writes it, with its imports sorted."""
    ruff = [sys.executable, "-m", "ruff"]
    where = ["--stdin-filename", str(TARGET), "-"]
    for command in ([*ruff, "check", "--quiet", "--select", "I,F401", "--fix-only", *where], [*ruff, "format", *where]):
        text = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
    return text


if __name__ == "__main__":
    main()
