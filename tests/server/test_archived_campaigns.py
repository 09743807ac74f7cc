"""docs/archiving.md#archiving: a campaign in an archive, over HTTP."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outreach.integrations.archives import archive_ledgers
from tests.server.conftest import serve


def test_an_archived_campaign_is_read_as_before_and_a_missing_archive_is_not_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is moved while the server runs; the name of the file is for the log, and not for clients."""
    database, file = tmp_path / "outreach.db", tmp_path / "secret-place.db"
    url = f"sqlite:///{database}"
    with contextmanager(serve)(url) as service:
        tenant = service.tenant()
        campaign_id = tenant.create()["id"]
        service.run(service.engine.campaigns.cancel, tenant.workspace.id, campaign_id)
        with closing(sqlite3.connect(database)) as raw, raw:
            raw.execute("UPDATE campaigns SET completed_at = '2020-01-01T00:00:00.000000Z', recipients_open = 0")
            raw.execute("UPDATE recipients SET status = 'canceled'")
        paths = [f"/manage/campaigns/{campaign_id}/{part}" for part in ("recipients", "recipients/0/trail", "export")]
        before = [tenant.get(path) for path in paths]
        assert [answer.status_code for answer in before] == [200, 200, 200]
        assert archive_ledgers(url, file, before=datetime(2021, 1, 1, tzinfo=UTC)).campaigns == 1
        assert [tenant.get(path).content for path in paths] == [answer.content for answer in before]
        file.unlink()
        answer = tenant.get(paths[0])
        assert answer.status_code == 500
        assert "secret-place" not in answer.text
        assert tenant.get(f"/manage/campaigns/{campaign_id}/report").json()["contacts"] == 1
    assert f"The archive {file} is not there" in caplog.text
