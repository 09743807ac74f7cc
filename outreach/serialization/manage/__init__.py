"""The JSON bodies of the operations under /manage (docs/managing.md)."""
