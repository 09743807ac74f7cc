"""The callbacks of carriers and voice providers (`docs/provider-callbacks.md`), not part of `openapi.yaml`."""
