"""The adapters of an engine: built in, given by its host, and of installed packages.

Built-in adapters are imported when an account uses one. Those of packages are entry points of the group
`outreach.adapters`, which are loaded once a process, when a name is not built in.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from outreach.core.async_functions import async_problem
from outreach.errors import ConfigError, Problem
from outreach.models.account import PROVIDERS, Provider
from outreach.protocols.adapter import CredentialField
from outreach.providers.http.request_gate import call_plugin_function

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from outreach.models.account import ProviderKind
    from outreach.models.reports import Explanation
    from outreach.protocols.adapter import Adapter, AnyAdapter, CarrierAdapter, VoiceAdapter

_log = logging.getLogger(__name__)

ADAPTER_GROUP: Final = "outreach.adapters"
"""The entry points of carriers and voice providers; each names an adapter object."""

ANALYSER_GROUP: Final = "outreach.analysers"
"""The entry points of analysers; each names an analyser object."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RESERVED: Final = frozenset({"simulator"})
_SHARED_METHODS: Final = ("problems", "check", "read", "connect")
_METHODS: Final[Mapping[object, Sequence[str]]] = {
    "carrier": (*_SHARED_METHODS, "carrier_start_words"),
    "voice": _SHARED_METHODS,
}
_COMMON_START_WORDS: Final = frozenset({"start"})
"""The START words of all carriers that answer keywords (Twilio, Telnyx, Vonage; CTIA messaging principles, 5.1.3)."""


@attrs.frozen(kw_only=True)
class Installed:
    """The objects of a group of entry points.

    Attributes:
        found: Objects by name, each with its package.
        problems: Unusable entry points, with the reason.
    """

    found: Mapping[str, tuple[object, str]]
    problems: Sequence[Problem]


class Adapters:
    """The carriers and voice providers that accounts can use.

    Args:
        given: The host's own adapters.
        installed: Returns those of installed packages.

    Raises:
        ConfigError: An adapter is incomplete, or its name is taken.
    """

    def __init__(self, given: Sequence[AnyAdapter] = (), *, installed: Callable[[], Installed] | None = None) -> None:
        self._given: dict[str, Adapter] = {}
        if not isinstance(given, Iterable):
            raise ConfigError(f"adapters is {given!r}; it must be a list of adapters.")
        for one in given:
            problem = adapter_problem(one) or self._taken(one.name)
            if problem is not None:
                raise ConfigError(f"adapters: {problem}")
            self._given[one.name] = one
        self._installed = installed or installed_adapters
        self._of_packages: tuple[Mapping[str, tuple[Adapter, str]], Sequence[Problem]] | None = None

    def kind(self, name: str | None) -> ProviderKind | None:
        """Return the kind of an adapter by its name; None if there is none."""
        if name is None:
            return None
        known = PROVIDERS.get(name)
        if known is not None:
            return known
        own = self._own(name)
        return own.kind if own is not None else None

    def names(self, kind: ProviderKind | None = None) -> Sequence[str]:
        """Return the names of all adapters, or of one kind, built-in ones first."""
        return [one.name for one in self.providers() if kind in {None, one.kind}]

    def providers(self) -> Sequence[Provider]:
        """Return the providers that accounts can use, built-in ones first, then the others by name."""
        own = [Provider(name=name, kind=kind, source="outreach") for name, kind in PROVIDERS.items()]
        given = [Provider(name=one.name, kind=one.kind, source="given") for one in self._given.values()]
        packages = [Provider(name=one.name, kind=one.kind, source=source) for one, source in self._packages().values()]
        return [*own, *sorted((*given, *packages), key=lambda one: one.name)]

    @property
    def problems(self) -> Sequence[Problem]:
        """The unusable adapters of packages, with the reason."""
        self._packages()
        assert self._of_packages is not None  # noqa: S101 - looked up in the line above
        return self._of_packages[1]

    def adapter(self, name: str) -> Adapter:
        """Return an adapter of either kind, or raise `ConfigError`."""
        kind = PROVIDERS.get(name)
        if kind is not None:
            package = "carriers" if kind == "carrier" else "voice"
            return cast("Adapter", import_module(f"outreach.providers.{package}.{name}").ADAPTER)
        own = self._own(name)
        if own is None:
            raise ConfigError(self.missing(name))
        return own

    def carrier(self, name: str) -> CarrierAdapter:
        """Return the adapter of an SMS carrier, or raise `ConfigError`."""
        return cast("CarrierAdapter", self._of_kind(name, "carrier"))

    def voice(self, name: str) -> VoiceAdapter:
        """Return the adapter of a voice provider, or raise `ConfigError`."""
        return cast("VoiceAdapter", self._of_kind(name, "voice"))

    def carrier_start_words(self, provider: str | None, to: str) -> Collection[str] | None:
        """Return the START words of a carrier that answers keywords itself; see `CarrierAdapter.carrier_start_words`.

        For an unknown carrier only the words of all carriers are returned. `to` is the number that was written to.
        """
        if provider is None or self.kind(provider) != "carrier":
            return _COMMON_START_WORDS
        return call_plugin_function(self.carrier(provider).carrier_start_words, to)

    def trunks_by_identifier(self, provider: str) -> bool:
        """Return whether a voice provider needs its own identifier of a SIP trunk."""
        return self.kind(provider) == "voice" and self.voice(provider).trunks_by_identifier

    def missing(self, name: str, kind: ProviderKind | None = None) -> str:
        """Return the message for a missing adapter, with the known names and advice."""
        what = {"carrier": "carrier", "voice": "voice provider", None: "provider"}[kind]
        words = f"{name!r} is no {what} that an account can be at here. There are: {', '.join(self.names(kind))}."
        if self.kind(name) is None:
            words += " One of your own is given to Outreach(adapters=[...]), or comes with an installed package."
        broken = [problem.message for problem in self.problems if problem.path == name]
        return " ".join([words, *broken])

    def _of_kind(self, name: str, kind: ProviderKind) -> Adapter:
        if self.kind(name) != kind:
            raise ConfigError(self.missing(name, kind))
        return self.adapter(name)

    def _own(self, name: str) -> Adapter | None:
        given = self._given.get(name)
        if given is not None:
            return given
        found = self._packages().get(name)
        return found[0] if found is not None else None

    def _packages(self) -> Mapping[str, tuple[Adapter, str]]:
        """Return the adapters of packages, each with its package, loaded once; log those that cannot be used."""
        if self._of_packages is None:
            installed = self._installed()
            usable: dict[str, tuple[Adapter, str]] = {}
            problems = list(installed.problems)
            for name, (found, source) in installed.found.items():
                if found is self._given.get(name):
                    continue
                words = adapter_problem(found) or self._taken(name)
                if words is None and getattr(found, "name", None) != name:
                    words = f"it names itself {getattr(found, 'name', None)!r}"
                if words is None:
                    usable[name] = (cast("Adapter", found), source)
                else:
                    words = f"The adapter {name!r} of {source} cannot be used: {words}"
                    problems.append(Problem(path=name, message=words))
            self._of_packages = usable, problems
            for problem in problems:
                _log.warning("%s", problem.message, extra={"action": "adapter_not_usable"})
        return self._of_packages[0]

    def _taken(self, name: str) -> str | None:
        if name in PROVIDERS or name in _RESERVED:
            return f"the engine brings an adapter named {name!r} itself: two of one name cannot be told apart."
        if name in self._given:
            return f"two adapters are named {name!r}: they cannot be told apart."
        return None


def adapter_problem(found: object) -> str | None:
    """Return why an object is not a valid adapter, or None."""
    if isinstance(found, type):
        return f"{found.__name__} is a class; an adapter is an object: {found.__name__}()."
    name: Any = getattr(found, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f"the name of {type(found).__name__} is {name!r}; it must be 1 to 40 small letters, digits, _ and -, "
            "beginning with a letter."
        )
    kind: Any = getattr(found, "kind", None)
    if kind not in _METHODS:
        return f"the kind of {name!r} is {kind!r}; it must be 'carrier' or 'voice'."
    lacking = [method for method in _METHODS[kind] if not callable(getattr(found, method, None))]
    lacking += [value for value in _VALUES[kind] if not hasattr(found, value)]
    if lacking:
        return f"{name!r} lacks {', '.join(lacking)}: see outreach.protocols.{_PROTOCOLS[kind]}."
    return _value_problem(found, name)


def _value_problem(found: Any, name: str) -> str | None:
    fields: object = found.fields
    if not isinstance(fields, Sequence) or not all(isinstance(field, CredentialField) for field in fields):
        return f"the fields of {name!r} are {fields!r}; they must be a list of outreach.protocols.CredentialField."
    for method in _METHODS[found.kind]:
        problem = async_problem(getattr(found, method), is_async=method == "check")
        if problem is not None:
            return f"{method} of {name!r} {problem}."
    return None


_PROTOCOLS: Final[Mapping[object, str]] = {"carrier": "CarrierAdapter", "voice": "VoiceAdapter"}
_SHARED_VALUES: Final = ("fields", "replies_to_keywords", "max_callback_bytes")
_VALUES: Final[Mapping[object, Sequence[str]]] = {
    "carrier": _SHARED_VALUES,
    "voice": (*_SHARED_VALUES, "trunks_by_identifier"),
}


@cache
def installed_adapters() -> Installed:
    """Return the adapters of installed packages, loaded once a process."""
    return _load(ADAPTER_GROUP)


@cache
def installed_analysers() -> Installed:
    """Return the analysers of installed packages, loaded once a process."""
    return _load(ANALYSER_GROUP)


def _load(group: str) -> Installed:
    from importlib.metadata import entry_points

    found: dict[str, tuple[object, str]] = {}
    problems = []
    by_name: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        same = by_name.setdefault(point.name, [])
        # A package may be on the module path twice.
        if all((one.value, _package(one)) != (point.value, _package(point)) for one in same):
            same.append(point)
    for name, points in by_name.items():
        if len(points) > 1:
            packages = " and ".join(sorted(_package(point) for point in points))
            words = f"{name!r} ({group}) comes with {packages}: neither is used; remove one of them."
            problems.append(Problem(path=name, message=words))
            continue
        point = points[0]
        try:
            found[name] = point.load(), _package(point)
        except Exception as error:  # the code of others: whatever it raises, the rest goes on
            words = (
                f"{name!r} ({group}) of {_package(point)} cannot be loaded from {point.value}: "
                f"{type(error).__name__}: {error}."
            )
            problems.append(Problem(path=name, message=words))
    return Installed(found=found, problems=problems)


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


_PACKAGES: Final = {"carrier": "carriers", "voice": "voice"}


def explain(*, provider: str, code: str | None, reason: str | None) -> Explanation | None:
    """Return the meaning of an error and advice, or None if it is unknown.

    Args:
        provider: The carrier or voice provider.
        code: The dispatch's `error_code`, or the `error` of a call record.
        reason: The dispatch's failure class (`reason`).
    """
    from outreach.models.reports import Explanation
    from outreach.rules.explanations import FAILURE_TEXTS, OWN_CODES

    general = FAILURE_TEXTS.get(reason or "")
    if code is not None:
        if code in OWN_CODES:
            meaning, advice = OWN_CODES[code]
            return Explanation(meaning=meaning, advice=advice)
        known = _of_provider(provider, code, general[1] if general else _LOOK_IT_UP)
        if known is not None:
            return known
        general = general or FAILURE_TEXTS.get(code)
    return None if general is None else Explanation(meaning=general[0], advice=general[1])


_LOOK_IT_UP: Final = "Look the code up at the provider."


def _of_provider(provider: str, code: str, advice: str) -> Explanation | None:
    from outreach.models.reports import Explanation

    table = _table(provider)
    if table is None:
        return None
    source = table.PAGE.format(code=code)
    meanings: Mapping[str, str] = table.MEANINGS
    if code in meanings:
        return Explanation(meaning=meanings[code], advice=table.ADVICE.get(code, advice), source=source)
    for part, meaning, its_advice in getattr(table, "PARTS", ()):
        if part in code.lower():
            return Explanation(meaning=meaning, advice=its_advice, source=source)
    return None


def _table(provider: str) -> Any:
    """Return a provider's explanations; None for a simulator, or if its extra is not installed."""
    kind = PROVIDERS.get(provider)
    if kind is None:
        return None
    try:
        return import_module(f"outreach.providers.{_PACKAGES[kind]}.{provider}.explanations")
    except ModuleNotFoundError:
        return None
