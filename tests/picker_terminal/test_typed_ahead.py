"""Keys that are typed before the picker has drawn anything."""

from __future__ import annotations

from .conftest import Stage, fake


def test_what_is_typed_while_it_is_loading_is_not_lost(stage: Stage) -> None:
    stage.write(files=fake("read_file", "write_file"))
    stage.open()
    stage.terminal.type("/writ")
    stage.terminal.until("/writ", "write_file", gone="read_file")
    stage.terminal.keys("Enter")
    stage.terminal.until("filter: writ")
    stage.terminal.keys("q")
    stage.terminal.until_shell()
