from __future__ import annotations

from flask_shop.shop import app, start

__all__ = ["app"]

start()
