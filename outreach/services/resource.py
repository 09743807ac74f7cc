"""Resources that a workspace's owner sets up: the methods that all their services share, written once.

A resource is a subclass of `Resource` that names its models (services/tenants/resources.py). It overrides the methods
that begin with an underscore where it has rules of its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from types import FunctionType
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, get_args

import attrs

from outreach.core.vault import Vault
from outreach.errors import Conflict
from outreach.ledger.common import record_audit, workspace_of
from outreach.models.base import Page
from outreach.models.work import IdempotencyKey
from outreach.models.workspace import Workspace
from outreach.services.context import ServiceContext, changed_fields, check_kind
from outreach.services.idempotency import Idempotency
from outreach.services.lists import PageRequest, iterate
from outreach.storage.unit_of_work import Transaction, WorkspaceTable
from outreach.storage.unit_of_work.kinds import Kind, kind_of


class SetUpModel(attrs.AttrsInstance, Protocol):
    """The model of a resource."""

    @property
    def id(self) -> str:
        """Its identifier."""
        ...

    @property
    def workspace_id(self) -> str:
        """Its workspace."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was created."""
        ...


M = TypeVar("M", bound=SetUpModel)
N = TypeVar("N", bound=attrs.AttrsInstance)
U = TypeVar("U", bound=attrs.AttrsInstance)
T = TypeVar("T")
P = ParamSpec("P")

_NAMED_USES = 3
"""How many uses a `Conflict` names."""

Operation = Literal["list", "create", "get", "update", "remove"]

EVERY_OPERATION: Final[tuple[Operation, ...]] = ("list", "create", "get", "update", "remove")


@attrs.frozen(kw_only=True)
class CommandTexts:
    """The texts of the commands that follow from a definition.

    Attributes:
        create: The help of `create`; empty for the usual sentence. So in `update` and `remove`.
        empty: The hint at the end of an empty list; it may contain `WORKSPACE_ID`.
        columns: The fields that `list` shows in a terminal; empty for all fields that documents show.
    """

    create: str = ""
    empty: str = ""
    update: str = ""
    remove: str = ""
    columns: tuple[str, ...] = ()


class Resource(Generic[M, N, U]):
    """Creates, changes, removes and lists what a workspace's owner sets up.

    Attributes:
        kind: The kind of its rows; their noun is what errors and the audit trail call one of them.
        called: The noun with its article.
        model: The model; `new` and `change` are those of `create` and `update`.
        remove_advice: The end of the `Conflict` that `remove` raises: how to free what is in use.
        created: The word for `create` in the audit trail, and in the name of the operation under /manage.
        title: The field by which people know one of them.
        managed: The methods that are operations under /manage.
        commands: The texts of its commands; None if it has none, or commands of its own.
    """

    kind: Kind[M]
    called: str
    model: type[M]
    new: type[N]
    change: type[U]
    remove_advice: str
    created: str = "create"
    title: str = "name"
    managed: tuple[Operation, ...] = ()
    commands: CommandTexts | None = None

    def __init_subclass__(cls) -> None:
        (definition,) = cls.__orig_bases__  # type: ignore[attr-defined]
        cls.model, cls.new, cls.change = get_args(definition)
        cls.kind = kind_of(cls.model)
        cls.called = f"{'an' if cls.kind.noun[0] in 'aeiou' else 'a'} {cls.kind.noun}"
        take_methods(cls, Resource, called=cls.called)

    def __init__(self, context: ServiceContext, vault: Vault) -> None:
        self._context = context
        self._vault = vault
        self._keys = Idempotency(context)

    async def create(
        self, workspace_id: str, new: N, *, idempotency_key: IdempotencyKey[M] = None, actor: str = "library"
    ) -> M:
        """Create a resource.

        Args:
            workspace_id: The workspace.
            new: The resource.
            idempotency_key: A name for it, such as `order-42`: for a day, the same key returns the same resource.
            actor: Recorded in the audit trail.

        Raises:
            NotFound: The workspace, or something that `new` names, does not exist.
            InvalidRequest: A value is invalid, or the key was used with other content.
            Conflict: The workspace may have it once, and has it already.
            RequestInProgress: The first call with this key is still running.
        """
        check_kind("new", new, self.new)
        identifier, now = self._context.ids(), self._context.now()

        def operation(tx: Transaction) -> M:
            values = self._stored(tx, workspace_of(tx, workspace_id), attrs.asdict(new, recurse=False))
            begun = self._begun(values, now)
            made = self.model(id=identifier, workspace_id=workspace_id, created_at=now, **begun)  # type: ignore[call-arg]
            made = self._completed(tx, made, now, actor)
            self._insert(tx, made)
            self._record(tx, self.created, made, now, actor)
            return made

        return await self._keys.written(
            workspace_id,
            f"{self.kind.noun}s.create",
            idempotency_key,
            operation,
            content=new,
            find=lambda tx, identifier: self._table(tx).existing(workspace_id, identifier),
        )

    async def get(self, workspace_id: str, identifier: str) -> M:
        """Return a resource.

        Raises:
            NotFound: The workspace has no such resource, or it was removed.
        """
        return await self._context.storage.read(lambda tx: self._table(tx).existing(workspace_id, identifier))

    async def update(self, workspace_id: str, identifier: str, change: U, *, actor: str = "library") -> M:
        """Change the given fields of a resource, and return it.

        Raises:
            NotFound: The workspace has no such resource, or something that `change` names does not exist.
            InvalidRequest: A value is invalid.
            Conflict: The resource is in use in a way that forbids the change.
        """
        changes = changed_fields(change, self.change)
        now = self._context.now()

        def operation(tx: Transaction) -> M:
            before = self._table(tx).existing(workspace_id, identifier)
            values = self._stored(tx, workspace_of(tx, workspace_id), changes)
            after = self._replace(tx, before, attrs.evolve(before, **values), now, actor)  # type: ignore[misc]
            self._record(tx, "update", after, now, actor)
            return after

        return await self._context.storage.write_in(workspace_id, operation)

    async def remove(self, workspace_id: str, identifier: str, *, actor: str = "library") -> M:
        """Remove a resource; ended campaigns and calls keep its id.

        Raises:
            NotFound: The workspace has no such resource.
            Conflict: The resource is in use.
        """
        now = self._context.now()

        def operation(tx: Transaction) -> M:
            one = self._table(tx).existing(workspace_id, identifier)
            require_unused(self._name(one), self._used_by(tx, one), self.remove_advice)
            gone = self._remove(tx, one, now, actor)
            self._record(tx, "remove", gone, now, actor)
            return gone

        return await self._context.storage.write_in(workspace_id, operation)

    async def list(self, workspace_id: str, *, after: str | None = None, limit: int = 100) -> Page[M]:
        """Return a page of a workspace's resources, oldest first.

        Raises:
            NotFound: The workspace does not exist.
            InvalidRequest: `after` or `limit` is invalid.
        """
        page_request = PageRequest(f"{self.kind.noun}s", workspace_id, after=after, limit=limit)
        found = await self._context.storage.read(
            lambda tx: self._table(tx).list_existing(workspace_of(tx, workspace_id).id)
        )
        return page_request.page_of_few(found)

    def iter_all(self, workspace_id: str) -> AsyncIterator[M]:
        """Iterate over a workspace's resources, oldest first; see `list`."""
        return iterate(partial(self.list, workspace_id))

    # The methods that a resource may override. All of them run within the transaction of the public method.

    def _table(self, tx: Transaction) -> WorkspaceTable[M]:
        """Return the table."""
        return tx.table(self.model)

    def _used_by(self, tx: Transaction, one: M) -> Sequence[str]:
        """Return what uses a resource, as text: one that is in use is not removed."""
        raise NotImplementedError

    def _name(self, one: M) -> str:
        """Return the name of a resource in errors."""
        return f"{self.kind.noun.capitalize()} {one.name!r}"  # type: ignore[attr-defined]

    def _stored(self, tx: Transaction, workspace: Workspace, values: dict[str, Any]) -> dict[str, Any]:
        """Return the given fields of a `New…` or an `…Update` as they are stored; raise if one is refused."""
        return values

    def _begun(self, values: dict[str, Any], now: datetime) -> dict[str, Any]:
        """Return the fields of a new model, but for its id, its workspace and the time of its creation."""
        return values

    def _completed(self, tx: Transaction, made: M, now: datetime, actor: str) -> M:
        """Return a new model with what follows from its fields; raise if it is refused."""
        return made

    def _insert(self, tx: Transaction, made: M) -> None:
        """Write a new model."""
        self._table(tx).insert(made)

    def _replace(self, tx: Transaction, before: M, after: M, now: datetime, actor: str) -> M:
        """Write a changed model and return it; raise if the change is refused."""
        self._table(tx).update(after)
        return after

    def _remove(self, tx: Transaction, one: M, now: datetime, actor: str) -> M:
        """Mark a model as removed and return it: campaigns and calls that have ended still name it."""
        gone = attrs.evolve(one, removed_at=now)  # type: ignore[misc]
        self._table(tx).update(gone)
        return gone

    def _record(self, tx: Transaction, action: str, one: M, now: datetime, actor: str) -> None:
        record_audit(tx, one.workspace_id, f"{self.kind.noun}.{action}", one.id, actor=actor, now=now)


def _blocking(method: Callable[Concatenate[Any, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    return cast("Callable[Concatenate[Any, P], T]", method)


def _iterating(method: Callable[Concatenate[Any, P], AsyncIterator[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    return cast("Callable[Concatenate[Any, P], Iterator[T]]", method)


class SyncResource(Generic[M, N, U]):
    """What type checkers know of a resource for synchronous code; `outreach.sync` makes it."""

    create = _blocking(Resource[M, N, U].create)
    get = _blocking(Resource[M, N, U].get)
    update = _blocking(Resource[M, N, U].update)
    remove = _blocking(Resource[M, N, U].remove)
    list = _blocking(Resource[M, N, U].list)
    iter_all = _iterating(Resource[M, N, U].iter_all)


def require_unused(name: str, used_by: Sequence[str], advice: str) -> None:
    """Raise `Conflict` if anything uses a resource; it names what does."""
    if used_by:
        more = f" and {len(used_by) - _NAMED_USES} more" if len(used_by) > _NAMED_USES else ""
        raise Conflict(f"{name} is in use by {', '.join(used_by[:_NAMED_USES])}{more}. {advice}")


def take_methods(cls: type, base: type, *, called: str = "a resource") -> tuple[Any, ...]:
    """Give a class the public methods of its generic base, with its own types and words; return the types.

    The code is the same; `help()`, `inspect.signature` and the synchronous engine show `Trunk` instead of `M`.

    Args:
        cls: A class that derives from `base[…]`.
        base: The generic class.
        called: The words of the docstrings instead of "a resource".
    """
    (definition,) = cls.__orig_bases__  # type: ignore[attr-defined]
    types: tuple[Any, ...] = get_args(definition)
    parameters: tuple[TypeVar, ...] = base.__parameters__  # type: ignore[attr-defined]
    names = {one.__name__: kind.__name__ for one, kind in zip(parameters, types, strict=True)}
    noun = called.partition(" ")[2]
    for name, method in vars(base).items():
        if isinstance(method, FunctionType) and not name.startswith("_") and name not in vars(cls):
            # With the types among the globals, so that `typing.get_type_hints` finds them.
            known = {**method.__globals__, **{kind.__name__: kind for kind in types}}
            own = FunctionType(method.__code__, known, name, method.__defaults__, method.__closure__)
            own.__kwdefaults__, own.__qualname__ = method.__kwdefaults__, f"{cls.__name__}.{name}"
            own.__doc__ = (method.__doc__ or "").replace("a resource", called).replace("resource", noun)
            own.__annotations__ = {
                argument: re.sub(r"\w+", lambda found: names.get(found[0], found[0]), written)
                for argument, written in method.__annotations__.items()
            }
            setattr(cls, name, own)
    return types
