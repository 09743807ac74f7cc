"""Metrics, alerts, traces and the log."""
