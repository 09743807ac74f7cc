"""A shop on Flask that texts its customers; docs/sync.md tells how to run it."""
