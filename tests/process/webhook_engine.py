"""The process of `tests.process.engine`, which gives failed deliveries up and tries them again within moments."""

from __future__ import annotations

import sys
from datetime import timedelta

import anyio
import pytest

from outreach.dispatch import webhook_endpoint, webhook_sender, webhooks
from outreach.rules import webhooks as rules
from tests.process import engine

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "STEPS", tuple(timedelta(seconds=0.2) for _ in rules.STEPS))
        patch.setattr(webhook_endpoint, "WHOLE_SECONDS", 2.0)
        patch.setattr(webhook_sender, "WHOLE_SECONDS", 2.0)
        patch.setattr(webhook_endpoint, "DRAIN_PER_SECOND", 500)
        patch.setattr(webhooks, "DELIVERED_PER_SECOND", 500)
        anyio.run(engine.main, sys.argv[1], sys.argv[2])
