"""Monitoring of a server: metrics, and lines of the log with the ids of requests and dispatches."""
