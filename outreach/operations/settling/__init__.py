"""What becomes of dispatches: outcomes, reports, callbacks, reconciliation."""
