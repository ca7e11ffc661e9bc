"""What stands on the terminal once the picker's screen is gone and its servers are still stopping."""

from __future__ import annotations

import pytest

from .conftest import Stage, fake


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("C-c", 130)])
def test_servers_that_will_not_end_are_told_of_and_the_line_is_wiped(stage: Stage, key: str, code: int) -> None:
    terminal = stage.terminal
    stage.write(deaf=fake("echo", ignore_eof=True, ignore_term=True))
    stage.open("--verbose")
    terminal.until("1 of 1 tool")
    assert "spawned" not in terminal.screen()
    terminal.keys(key)
    terminal.until("stopping the servers", "server 'deaf': spawned")
    shown = terminal.until_shell()
    assert "stopping the servers" not in shown
    assert f"exit code {code}" in shown
    assert stage.processes() == []
