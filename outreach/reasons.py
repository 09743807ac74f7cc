"""Sentences for people: what a reason, a rule or a provider's error means. A public module."""

from __future__ import annotations

from outreach.providers.registry import explain
from outreach.rules.explanations import (
    CLOSING_RULES,
    LIMITS,
    PAUSE_REASONS,
    SAFE_RESUME_OPTIONS,
    SCHEDULE_REASONS,
    describe_reason,
    describe_zones,
)

__all__ = [
    "CLOSING_RULES",
    "LIMITS",
    "PAUSE_REASONS",
    "SAFE_RESUME_OPTIONS",
    "SCHEDULE_REASONS",
    "describe_reason",
    "describe_zones",
    "explain",
]
