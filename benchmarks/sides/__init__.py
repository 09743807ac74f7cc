"""Sides that are measured, each a process of its own: told by one JSON argument, it prints one JSON document."""
