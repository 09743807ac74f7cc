from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES
from tests.examples.webhook_deliveries import NEW, OLD, check_receiver, free_port


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_the_python_receiver_takes_signed_deliveries_once(secret: bytes, tmp_path: Path) -> None:
    """With either secret of a rotation; a changed byte, id or time is refused by `standardwebhooks`."""
    shutil.copy(EXAMPLES / "webhook_receiver" / "receiver.py", tmp_path)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "receiver:app", "--port", str(port), "--no-access-log"]
    check_receiver(command, secret, cwd=tmp_path, port=port)
