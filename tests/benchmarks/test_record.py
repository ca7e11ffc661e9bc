"""What was measured is in the file at once, and stays there whatever happens to the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Runner = Callable[[str], ModuleType]


def cells(file: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(file.read_text())["cells"]
    return found


def test_each_cell_is_in_the_file_when_it_was_added_and_after_those_of_the_run_before(
    runner: Runner, tmp_path: Path
) -> None:
    record, file = runner("record").Record, tmp_path / "new folder" / "some.json"
    first = record(file, {"rounds": 5}, "cells")
    first.add("cells", {"kind": "exit"})
    assert cells(file) == [{"kind": "exit"}]
    again = record(file, {"rounds": 5}, "cells")
    again.add("cells", {"kind": "kill"})
    assert cells(file) == [{"kind": "exit"}, {"kind": "kill"}]


@pytest.mark.parametrize("other", ["settings", "versions", "python", "system", "processor"])
def test_what_was_made_with_something_else_is_not_gone_on_with(runner: Runner, tmp_path: Path, other: str) -> None:
    record, file = runner("record").Record, tmp_path / "some.json"
    record(file, {"rounds": 5}, "cells").add("cells", {"kind": "exit"})
    made = json.loads(file.read_text())
    made["about"][other] = {"rounds": 4}
    file.write_text(json.dumps(made))
    record(file, {"rounds": 5}, "cells").add("cells", {"kind": "kill"})
    assert cells(file) == [{"kind": "kill"}]


def test_a_cell_is_found_only_when_all_fields_are_its_own(runner: Runner) -> None:
    record = runner("record").Record(None, {}, "cells")
    one = record.add("cells", {"kind": "exit", "peer": "a", "servers": 10})
    assert record.find("cells", kind="exit", peer="a") is one
    assert record.find("cells", kind="exit", peer="b") is None
    assert record.find("cells", kind="exit", other="a") is None


def test_a_run_that_ends_while_it_writes_leaves_the_file_as_it_was(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "some.json"
    record = runner("record").Record(file, {}, "cells")
    record.add("cells", {"kind": "exit"})
    write = Path.write_text

    def stopped(self: Path, text: str) -> int:
        write(self, text[: len(text) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", stopped)
    with pytest.raises(KeyboardInterrupt):
        record.add("cells", {"kind": "kill"})
    assert cells(file) == [{"kind": "exit"}]
