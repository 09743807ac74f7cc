"""The engine's services of what a workspace's owner sets up, by name; `resources` defines them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from outreach.services.context import ServiceContext
    from outreach.services.resource import Resource
    from outreach.services.tenants.resources import Agents, Flows, Numbers, Trunks

C = TypeVar("C", bound="ResourceServices")


def _made_when_used(kind: type[C]) -> type[C]:
    """Import the definitions, and make a service, when one of the class's attributes is first read."""
    for name in kind.__annotations__:
        if not name.startswith("_"):
            service = cached_property(_maker(name))
            service.__set_name__(kind, name)
            setattr(kind, name, service)
    return kind


def _maker(name: str) -> Callable[[ResourceServices], Resource[Any, Any, Any]]:
    def make(services: ResourceServices) -> Resource[Any, Any, Any]:
        from outreach.services.tenants.resources import RESOURCE_SERVICES

        return RESOURCE_SERVICES[name](services._context)

    return make


@_made_when_used
class ResourceServices:
    """The services of the resources; the engine has each under the plural of its noun.

    Attributes:
        agents: Voice agents.
        trunks: SIP trunks.
        numbers: Numbers to send and call from.
        flows: Automation flows.
    """

    _context: ServiceContext

    agents: Agents
    trunks: Trunks
    numbers: Numbers
    flows: Flows
