"""How a `headersHelper` ended decides whether it is tried again: a command that is not there needs an edit, no other does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playbill.actors.edge.wire.remote.helper import headers_from
from playbill.actors.edge.wire.wire import HttpRefused


@pytest.mark.parametrize(
    ("command", "futile"),
    [("no-such-command-anywhere", True), ("./plain", True), ("exit 3", False), ("echo no", False)],
)
async def test_only_a_command_that_is_not_there_or_cannot_be_run_is_futile(
    tmp_path: Path, command: str, futile: bool
) -> None:
    (tmp_path / "plain").write_text("not executable")
    with pytest.raises(HttpRefused) as refused:
        await headers_from(command, name="web", url="http://x/", cwd=str(tmp_path), env=dict(os.environ))
    assert refused.value.futile is futile
