"""The callbacks of carriers and voice providers (`docs/webhooks.md`), not part of `openapi.yaml`."""
