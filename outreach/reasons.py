"""Sentences for people: what a reason, a rule or a provider's error means. A public module."""

from __future__ import annotations

from outreach.models.trail import TRAIL_RULES
from outreach.providers.registry import explain
from outreach.rules.explanations import PAUSE_REASONS, describe_reason

__all__ = [
    "PAUSE_REASONS",
    "TRAIL_RULES",
    "describe_reason",
    "explain",
]
