from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("CLINIC_DATA", "."))

SECRET_KEY = "of this example alone"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "clinic.urls"
INSTALLED_APPS = ["clinic"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA / "clinic.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

OUTREACH_DATABASE_URL = f"sqlite:///{DATA / 'outreach.db'}"
OUTREACH_SENDER = "+12125550199"
