from __future__ import annotations

import inspect
from typing import get_type_hints

from outreach.models import Agent, AgentUpdate
from outreach.services.tenants.resources import Agents


def test_the_methods_of_a_service_name_its_types_and_its_resource() -> None:
    """They are those of a generic class, which `help()` would show with type variables."""
    assert str(inspect.signature(Agents.update).return_annotation) == "Agent"
    hints = get_type_hints(Agents.update)
    assert (hints["change"], hints["return"]) == (AgentUpdate, Agent)
    assert inspect.getdoc(Agents.create).startswith("Create an agent.")  # type: ignore[union-attr]
    for name in ("create", "get", "list", "iter_all", "update", "remove"):
        assert "resource" not in (getattr(Agents, name).__doc__ or "resource")
