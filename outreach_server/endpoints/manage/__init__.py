"""The operations under /manage (docs/managing.md): this project's own, beside those of the interface."""
