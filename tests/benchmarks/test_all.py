"""The whole run: what is there stays, what failed is run again, and its exit code says whether any did."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Runner = Callable[[str], ModuleType]

SCRIPT = """
import pathlib, sys
here = pathlib.Path(__file__)
file = pathlib.Path(sys.argv[sys.argv.index("--json") + 1]) if "--json" in sys.argv else None
with here.with_suffix(".runs").open("a") as runs:
    runs.write(" ".join([*sys.argv[1:], *["(goes on)"] * (file is not None and file.exists())]) + "\\n")
if file is not None:
    file.write_text("{}")
print("the figures")
sys.exit(3 if here.with_suffix(".fails").exists() else 0)
"""


class Whole:
    """The runner over three scripts that note each run."""

    def __init__(self, module: ModuleType, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.module = module
        self.here = folder / "benchmarks"
        self.into = folder / "results"
        self.patch = patch
        self.here.mkdir()
        for name in ("one", "two", "said"):
            (self.here / f"{name}.py").write_text(SCRIPT)
        patch.setattr(module, "HERE", self.here)
        patch.setattr(module, "PRINTED", {"said"})
        patch.setattr(
            module,
            "RUNS",
            {"one": ("one.py", [], ["--quick"]), "two": ("two.py", ["--where"], []), "said": ("said.py", [], [])},
        )

    def run(self, *given: str) -> object:
        """Its exit code."""
        self.patch.setattr(sys, "argv", ["all.py", "--into", str(self.into), "--where", "somewhere", *given])
        with pytest.raises(SystemExit) as caught:
            self.module.main()
        return caught.value.code

    def runs(self, name: str) -> list[str]:
        """With which arguments one was run."""
        file = self.here / f"{name}.runs"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def whole(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Whole:
    return Whole(runner("all"), tmp_path, monkeypatch)


def test_all_are_run_once_and_what_is_there_is_left_out(whole: Whole) -> None:
    assert not whole.run()
    assert not whole.run()
    assert whole.runs("one") == [f"--json {whole.into / 'one.json'}"]
    assert whole.runs("two") == [f"--json {whole.into / 'two.json'} --where somewhere"]
    assert whole.runs("said") == [""]
    assert json.loads((whole.into / "said.json").read_text())["text"] == "the figures\n"


def test_one_that_failed_is_run_again_and_the_others_are_not(whole: Whole) -> None:
    (whole.here / "one.fails").touch()
    assert whole.run()
    (whole.here / "one.fails").unlink()
    assert not whole.run()
    assert whole.runs("one") == [f"--json {whole.into / 'one.json'}", f"--json {whole.into / 'one.json'} (goes on)"]
    assert [len(whole.runs(name)) for name in ("two", "said")] == [1, 1]


def test_anew_measures_again_and_only_those_that_are_named(whole: Whole) -> None:
    whole.run()
    (whole.into / "one.json").write_text("of before")
    assert not whole.run("--anew", "--only", "one", "--quick")
    assert whole.runs("one")[1:] == [f"--json {whole.into / 'one.json'} --quick"]
    assert (whole.into / "one.json").read_text() == "{}"
    assert [len(whole.runs(name)) for name in ("two", "said")] == [1, 1]


def test_results_that_were_removed_are_measured_again(whole: Whole) -> None:
    whole.run()
    (whole.into / "two.json").unlink()
    assert not whole.run()
    assert [len(whole.runs(name)) for name in ("one", "two", "said")] == [1, 2, 1]


def test_what_was_printed_before_stays_when_a_run_fails(whole: Whole) -> None:
    whole.run()
    (whole.into / ".said.done").unlink()
    (whole.here / "said.fails").touch()
    assert whole.run()
    assert json.loads((whole.into / "said.json").read_text())["text"] == "the figures\n"


def test_a_quick_run_does_not_stand_for_a_whole_one(whole: Whole) -> None:
    whole.run("--quick")
    assert not whole.run()
    assert whole.runs("one")[1:] == [f"--json {whole.into / 'one.json'} (goes on)"]
