from __future__ import annotations

from pathlib import Path

import pytest

from outreach.storage.opening import state_directory


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({}, None),
        ({"OUTREACH_STATE_DIR": "", "STATE_DIRECTORY": ""}, None),
        ({"STATE_DIRECTORY": "/var/lib/outreach"}, "/var/lib/outreach"),
        ({"STATE_DIRECTORY": "/var/lib/outreach:/var/lib/more"}, "/var/lib/outreach"),
        ({"OUTREACH_STATE_DIR": "/data", "STATE_DIRECTORY": "/var/lib/outreach"}, "/data"),
    ],
)
def test_the_state_directory_is_named_by_the_host_or_by_systemd(
    environment: dict[str, str], directory: str | None
) -> None:
    """The first that systemd names."""
    assert state_directory(environment) == (None if directory is None else Path(directory))
