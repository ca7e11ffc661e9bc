"""Over HTTP, what a caller waits for and may hang takes no connection from what keeps the server in order."""

from __future__ import annotations

from typing import Any

import pytest
from playbill.actors.edge.wire.remote.clients import Clients


@pytest.mark.parametrize(
    ("method", "client"),
    [
        ("tools/call", "calls"),
        ("resources/read", "calls"),
        ("prompts/get", "calls"),
        ("completion/complete", "calls"),
        ("tools/list", "control"),
        ("resources/list", "control"),
        ("subscriptions/listen", "control"),
        ("ping", "control"),
    ],
)
def test_what_may_hang_has_connections_of_its_own(method: str, client: str) -> None:
    clients: Any = Clients("calls", "control")  # type: ignore[arg-type]
    assert clients.of(method) == client
