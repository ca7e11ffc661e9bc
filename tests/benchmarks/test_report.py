"""Every number in the documents is that of a committed result; what is no longer, or was typed by hand, is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Runner = Callable[[str], ModuleType]

ABOUT: dict[str, Any] = {
    "begun": "2026-01-01 00:00 UTC",
    "processor": "one, 2 cores",
    "memory": "4 GB",
    "system": "Linux 6, x86_64",
    "python": "3.11.0",
    "versions": {"playbill": "1"},
    "load before": 0.1,
    "settings": {"rounds": 5},
}


def load(p99: float | None, errors: int = 0) -> dict[str, Any]:
    return {"p50": 1.0, "p99": p99, "p99.9": 3.0, "max": 4.0, "errors": errors, "calls": 100}


def of_peer(peer: str, kind: str, ratio: float | None, errors: int = 0, **more: Any) -> dict[str, Any]:
    loads = {"sequential": load(1.0, errors), "16 at once": load(1.0)}
    return {
        "peer": peer,
        "kind": kind,
        "arms": {"faulty": {"loads": loads}, "busy": {"loads": {name: load(1.0) for name in loads}}},
        "p99 over busy": {name: {"median": ratio, "pooled": ratio} for name in loads},
        "errors": errors,
        "faults": 3,
        "callable again": "by itself, 700 ms",
        "words": {},
        **more,
    }


def test_tables_and_plots_are_those_of_the_committed_results(runner: Runner) -> None:
    assert runner("report").stale() == []


def test_a_number_typed_by_hand_and_a_plot_of_other_results_are_seen(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = runner("report")
    document = tmp_path / "README.md"
    document.write_text("before\n\n<!-- results: startup -->\n<!-- end of results: startup -->\n\nafter\n")
    monkeypatch.setattr(report, "DOCUMENTS", (document,))
    monkeypatch.setattr(report, "HERE", tmp_path / "benchmarks")
    rows = [{"servers": 40, "by hand ms": 500.0, "playbill ms": 600.0, "ratio": 1.2}]
    results = tmp_path / "startup.json"
    results.write_text(json.dumps({"about": ABOUT, "rows": rows}))

    def stale() -> list[str]:
        found: list[str] = report.stale(tmp_path)
        return found

    assert stale() == ["README.md: its tables are not those of the committed results"]
    document.write_text(report.rendered(document.read_text(), report.sections(report.results(tmp_path))))
    assert stale() == []
    text = document.read_text()
    assert "| 40 | 500 | 600 | 1.2 |" in text
    assert text.startswith("before\n\n<!-- results")
    assert text.endswith("-->\n\nafter\n")
    document.write_text(text.replace("| 1.2 |", "| 1.1 |"))
    assert stale() == ["README.md: its tables are not those of the committed results"]
    document.write_text(text)

    (tmp_path / "scaling.json").write_text("{}")
    monkeypatch.setattr(report, "PLOTS", {"scaling": ("scaling",)})
    monkeypatch.setattr(report, "sections", lambda found: {"startup": text.split("-->\n")[1].split("\n<!--")[0]})
    assert stale() == ["scaling.svg: is not made of the committed results"]
    (tmp_path / "scaling.svg").write_text(f"<svg>made of {report.digest(('scaling',), tmp_path)}</svg>")
    assert stale() == []
    (tmp_path / "scaling.json").write_text('{"other": 1}')
    assert stale() == ["scaling.svg: is not made of the committed results"]


def test_the_check_looks_at_every_document_and_ends_with_an_error(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = runner("report")
    documents = [tmp_path / "one.md", tmp_path / "two.md"]
    for document in documents:
        document.write_text("<!-- results: startup -->\ntyped by hand\n<!-- end of results: startup -->\n")
    monkeypatch.setattr(report, "DOCUMENTS", documents)
    monkeypatch.setattr(report, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(report, "PLOTS", {})
    monkeypatch.setattr("sys.argv", ["report.py", "--check"])
    with pytest.raises(SystemExit) as caught:
        report.main()
    assert caught.value.code == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["one.md", "two.md"]
    texts = report.sections(report.results())
    for document in documents:
        document.write_text(report.rendered(document.read_text(), texts))
    with pytest.raises(SystemExit) as caught:
        report.main()
    assert not caught.value.code


def test_what_could_not_be_measured_is_said_in_its_cell(runner: Runner) -> None:
    tables = runner("tables")
    cells = [
        of_peer("playbill", "exit", 1.02),
        of_peer("fastmcp", "exit", None, errors=90, **{"callable again": "not by itself"}),
        {"peer": "mcp_group", "kind": "exit", "the group failed": "RuntimeError: it was\nleft | early"},
        {"peer": "langchain", "kind": "exit", "could not": "langchain could not be installed"},
    ]
    lines = tables.peers_isolation({"about": ABOUT, "cells": cells}).splitlines()
    assert "| **Playbill** | 1.02 / 1.02 |" in lines
    assert "| **Playbill** | by itself, 700 ms |" in lines
    assert "| fastmcp `Client` | – / –, 90 errors (0 in the busy arm) |" in lines
    assert "| mcp `ClientSessionGroup` | the whole group failed: RuntimeError: it was left / early |" in lines
    assert "| langchain-mcp-adapters | could not: langchain could not be installed |" in lines


def test_a_run_that_was_stopped_goes_on_and_other_settings_begin_anew(runner: Runner, tmp_path: Path) -> None:
    record = runner("record").Record
    file = tmp_path / "some.json"
    record(file, {"rounds": 5}, "cells").add("cells", {"kind": "exit", "servers": 10, "p99": 1.0})
    again = record(file, {"rounds": 5}, "cells")
    assert again.find("cells", kind="exit", servers=10) == {"kind": "exit", "servers": 10, "p99": 1.0}
    assert again.find("cells", kind="exit", servers=40) is None
    assert record(file, {"rounds": 3}, "cells").find("cells", kind="exit", servers=10) is None


def test_the_ratio_is_the_median_of_the_rounds_and_none_where_a_round_had_no_calls(runner: Runner) -> None:
    module = runner("load")
    faulty, busy = module.Load(), module.Load()
    faulty.times, busy.times = [0.001] * 100, [0.001] * 100
    faulty.p99s, busy.p99s = [1.0, 9.0, 2.0], [1.0, 1.0, 1.0]
    assert module.over(faulty, busy) == {"median": 2.0, "pooled": 1.0}
    faulty.p99s = [1.0, None, 2.0]
    assert module.over(faulty, busy)["median"] is None
    counted = {arm: sum(order.index(arm) for order in module.orders(6)) for arm in ("calm", "faulty", "busy")}
    assert set(counted.values()) == {6}, "no arm is later than another"
