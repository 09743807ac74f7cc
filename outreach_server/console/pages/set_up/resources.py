"""The resources of a workspace: lists and forms follow from their definitions, as commands and operations do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
from markupsafe import Markup

from outreach import FlowStep
from outreach.server_support import RESOURCE_SERVICES, hidden_fields
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.drawing.flows import drawn
from outreach_server.console.pages.set_up.field_words import FIELDS
from outreach_server.console.pages.set_up.inputs import Choices, Input, changed, inputs_of
from outreach_server.console.pages.set_up.nouns import PAGE_SIZE, Cell, Listed, Noun, On, Result, Sent, SetUpAction, at
from outreach_server.endpoints.manage.resources import resource_operation

_SIMULATOR: Final = "simulator"
_COLUMNS: Final = 4
"""The most columns of a table, beside the name."""

_SHOWN: Final = {"agents": ("provider", "direction", "is_active", "from_number"), "flows": ("steps", "created_at")}
"""The columns of those whose definitions name none."""

_WORDS: Final = ("carrier", "direction", "provider", "voicemail")
"""Fields that hold names of code, which are shown as words."""

_EMPTY: Final = {
    "agents": "Voice agents of a provider, which place the calls of campaigns. There is none yet.",
    "numbers": "Numbers that messages and calls come from. There is none yet.",
    "trunks": "SIP trunks, through which a voice provider places calls. Most workspaces need none.",
    "flows": "Several messages to each contact, with waits between. There is none yet.",
}


class ResourceNoun(Noun):
    """A resource.

    Args:
        name: The engine's attribute, and its path.
    """

    def __init__(self, name: str) -> None:
        definition = RESOURCE_SERVICES[name]
        self._definition: Any = definition
        noun = definition.kind.noun
        self.name, self.title, self.one = name, name.capitalize(), noun
        self.right = Right.FLOWS
        named = _SHOWN.get(name) or (definition.commands.columns if definition.commands else ())
        fields = _fields_of(definition.model)
        shown = [one for one in named or fields if one in fields and one != definition.title]
        self._columns = shown[:_COLUMNS]
        self.columns = (_label(definition.title), *(_label(one) for one in self._columns))
        self.empty = _EMPTY.get(name, f"There are no {name} yet.")
        # Managers change flows, and see the rest.
        right = None if name == "flows" else Right.SET_UP

        def operation(method: str) -> str:
            return resource_operation(definition, method) if method in definition.managed else ""

        self.on_list = (
            SetUpAction(
                name="create",
                label=f"{definition.created.capitalize()} {definition.called}",
                right=right,
                command=f"{name} create",
                operation=operation("create"),
                fields=self._new_fields,
                do=self._create,
                primary=True,
            ),
        )
        self.on_one = (
            SetUpAction(
                name="update",
                label="Save",
                title="Change it",
                right=right,
                command=f"{name} update",
                operation=operation("update"),
                fields=self._change_fields,
                do=self._update,
                changes=True,
                primary=True,
            ),
            SetUpAction(
                name="remove",
                label=f"Remove this {noun}",
                right=right,
                command=f"{name} remove",
                operation=operation("remove"),
                do=self._remove,
                done="It is removed.",
                typed=True,
                effect=f"What has ended keeps its name; nothing new can use the {noun}.",
            ),
        )

    async def list(self, visit: Visit, after: str | None) -> Listed:
        """Return a page of the resources."""
        page = await self._service(visit).list(visit.place.id, after=after, limit=PAGE_SIZE)
        return Listed(items=page.items, next=page.next)

    async def get(self, visit: Visit, identifier: str) -> Any:
        """Return a resource."""
        return await self._service(visit).get(visit.place.id, identifier)

    def called(self, one: Any) -> str:
        """Return what people know it by."""
        return str(getattr(one, self._definition.title))

    async def cells(self, visit: Visit, items: Sequence[Any]) -> Sequence[Sequence[Cell]]:
        """Return the first fields of each."""
        names = await self._names(visit, items)
        return [[_shown(visit, name, getattr(one, name), names) for name in self._columns] for one in items]

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return the fields that no form has, or all where the person may not change them."""
        names = await self._names(visit, [one])
        fixed = {*_fields_of(one), self._definition.title}
        if self.on_one[0].is_open_to(visit):
            fixed -= set(_fields_of(self._definition.change))
        found = [
            (_label(name), _shown(visit, name, getattr(one, name), names)) for name in _fields_of(one) if name in fixed
        ]
        return [("Identifier", one.id), *((label, value) for label, value in found if value)]

    def _service(self, visit: Visit) -> Any:
        return getattr(visit.engine, self.name)

    async def _names(self, visit: Visit, items: Sequence[Any]) -> Mapping[str, str]:
        """Return the names of the resources that some name by their identifiers."""
        return {}

    async def _choices(self, visit: Visit) -> Mapping[str, Choices]:
        """Return the choices of fields that name other things."""
        found: dict[str, Choices] = {}
        fields = {*_fields_of(self._definition.new), *_fields_of(self._definition.change)}
        if "carrier" in fields:
            found["carrier"] = _providers(visit, "carrier")
        if "provider" in fields:
            found["provider"] = [(_SIMULATOR, "Simulator"), *_providers(visit, "voice")]
        return found

    async def _new_fields(self, on: On) -> Sequence[Input]:
        return inputs_of(self._definition.new, choices=await self._choices(on.visit))

    async def _change_fields(self, on: On) -> Sequence[Input]:
        return inputs_of(self._definition.change, on.one, choices=await self._choices(on.visit))

    async def _create(self, sent: Sent) -> Result:
        new = self._definition.new(**sent.values)
        made = await self._service(sent.visit).create(sent.place, new, idempotency_key=sent.key, actor=sent.actor)
        return Result(goes_to=made.id)

    async def _update(self, sent: Sent) -> Result:
        if changes := changed(sent.values, sent.one):
            change = self._definition.change(**changes)
            await self._service(sent.visit).update(sent.place, sent.one.id, change, actor=sent.actor)
        return Result()

    async def _remove(self, sent: Sent) -> Result:
        await self._service(sent.visit).remove(sent.place, sent.one.id, actor=sent.actor)
        return Result(goes_to="list")


class NumbersNoun(ResourceNoun):
    """Numbers, which may name a trunk."""

    async def _names(self, visit: Visit, items: Sequence[Any]) -> Mapping[str, str]:
        return dict(await _trunks(visit)) if any(one.trunk_id for one in items) else {}

    async def _choices(self, visit: Visit) -> Mapping[str, Choices]:
        return {**await super()._choices(visit), "trunk_id": await _trunks(visit)}


_MORE_STEPS: Final = 2
_LEAST_STEPS: Final = 4
_MOST_STEPS: Final = 50
_STEP_KINDS: Final = (
    ("", "No step"),
    ("send", "Send a message"),
    ("wait", "Wait"),
    ("stop_if_replied", "End here for those who have replied"),
)


class FlowsNoun(ResourceNoun):
    """Flows, whose steps are drawn, and edited in a form that has some more of them than there are."""

    async def drawing(self, visit: Visit, one: Any) -> Markup:
        """Return the steps with the contacts at each."""
        counts = await visit.engine.flows.count_contacts(visit.place.id, one.id)
        return drawn(one.steps, [count.contacts for count in counts])

    async def facts(self, visit: Visit, one: Any) -> Sequence[tuple[str, Cell]]:
        """Return what the drawing does not say."""
        return [("Identifier", one.id), ("Created", at(visit, one.created_at))]

    async def _new_fields(self, on: On) -> Sequence[Input]:
        return [*await super()._new_fields(on), *_step_fields(())]

    async def _change_fields(self, on: On) -> Sequence[Input]:
        return [*await super()._change_fields(on), *_step_fields(on.one.steps)]

    async def _create(self, sent: Sent) -> Result:
        return await super()._create(attrs.evolve(sent, values=_with_steps(sent.values)))

    async def _update(self, sent: Sent) -> Result:
        return await super()._update(attrs.evolve(sent, values=_with_steps(sent.values)))


def _step_fields(steps: Sequence[FlowStep]) -> Sequence[Input]:
    count = min(_MOST_STEPS, max(_LEAST_STEPS, len(steps) + _MORE_STEPS))
    found = []
    for place in range(count):
        step = steps[place] if place < len(steps) else None
        group = f"Step {place + 1}"
        kind = Input(
            name=f"kind{place}",
            label="What",
            kind="choice",
            choices=_STEP_KINDS,
            group=group,
            value="" if step is None else step.kind,
        )
        body = Input(
            name=f"body{place}",
            label="Text of a message",
            kind="area",
            optional=True,
            longest=1600,
            group=group,
            value=(step.body if step is not None else None) or "",
        )
        wait = Input(
            name=f"wait{place}",
            label="Minutes of a wait",
            kind="number",
            optional=True,
            longest=6,
            group=group,
            value=str(step.wait_minutes or "") if step is not None else "",
        )
        found += [kind, body, wait]
    return found


def _with_steps(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a model for those of a form, which has three fields for each step."""
    places = [int(name.removeprefix("kind")) for name in values if name.startswith("kind")]
    steps = [
        FlowStep(
            kind=values[f"kind{place}"],
            body=values[f"body{place}"] if values[f"kind{place}"] == "send" else None,
            wait_minutes=values[f"wait{place}"] if values[f"kind{place}"] == "wait" else None,
        )
        for place in places
        if values[f"kind{place}"]
    ]
    return {"name": values["name"], "steps": tuple(steps)}


async def _trunks(visit: Visit) -> Choices:
    found = (await visit.engine.trunks.list(visit.place.id, limit=PAGE_SIZE)).items
    return [(one.id, one.name) for one in found]


def _providers(visit: Visit, kind: str) -> Choices:
    return [(one.name, words.sentence_of(one.name)) for one in visit.engine.accounts.providers() if one.kind == kind]


def _fields_of(model: Any) -> Sequence[str]:
    kind = model if isinstance(model, type) else type(model)
    hidden = {"id", "workspace_id", *hidden_fields(kind)}
    return [field.name for field in attrs.fields(kind) if field.name not in hidden]


def _label(name: str) -> str:
    known = FIELDS.get(name)
    return known[0] if known is not None else words.sentence_of(name.removesuffix("_at"))


def _shown(visit: Visit, name: str, value: object, names: Mapping[str, str]) -> Cell:
    """Return the value of a field in a table."""
    match value:
        case None | "":
            return ""
        case bool():
            return "Yes" if value else "No"
        case datetime():
            return at(visit, value)
        case tuple() | list():
            return words.number(len(value)) if value and attrs.has(type(value[0])) else ", ".join(map(str, value))
        case _:
            text = str(value)
            return words.sentence_of(text) if name in _WORDS else names.get(text, text)
