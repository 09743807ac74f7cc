"""Settling dispatches: outcomes, reports, callbacks, reconciliation."""
