"""Shared parts of the HTTP adapters: exactly one request, outcome classes, signatures."""
