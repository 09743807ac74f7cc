"""What carriers and voice providers call back (`docs/webhooks.md`); no part of `openapi.yaml`."""
