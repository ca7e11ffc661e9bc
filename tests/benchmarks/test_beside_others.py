"""Beside others: rounds become medians, what was measured before stays, and words say what happened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Runner = Callable[[str], ModuleType]


def test_a_number_is_the_median_of_the_rounds_and_words_are_those_of_the_last(peers_runner: Runner) -> None:
    merged = peers_runner("run").merged
    rounds = [{"a": 5.0, "b": 1.0, "c": "x"}, {"a": 2.0, "b": "failed", "c": "y"}, {"a": 1.0, "b": "failed", "c": "z"}]
    assert merged(rounds) == {"a": 2.0, "b": "failed", "c": "z"}


def test_rows_of_one_more_peer_are_added_to_those_that_are_there(
    peers_runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, file = peers_runner("run"), tmp_path / "peers.json"
    asked: list[tuple[list[str], list[str]]] = []

    def measure(peers: list[str], rows: list[str], *more: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        asked.append((peers, rows))
        for row in rows:
            yield row, {peer: {"cell": f"{row} of {peer}"} for peer in peers}

    monkeypatch.setattr(run, "measure", measure)
    monkeypatch.setattr(run, "versions", lambda name, where: {name: "1"})

    def measured(peers: str, rows: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["run.py", "--peers", peers, "--rows", rows, "--json", str(file)])
        run.main()
        return json.loads(file.read_text())["rows"]

    measured("playbill", "calls")
    measured("playbill", "calls,close")
    found = measured("fastmcp", "calls,close")
    assert asked == [(["playbill"], ["calls"]), (["playbill"], ["close"]), (["fastmcp"], ["calls", "close"])]
    assert found == {
        row: {peer: {"cell": f"{row} of {peer}"} for peer in ("playbill", "fastmcp")} for row in ("calls", "close")
    }


def test_a_cell_is_what_was_printed_last_and_whole(peers_runner: Runner, tmp_path: Path) -> None:
    said = peers_runner("isolation").said
    (tmp_path / "out").write_text('{"errors": 1}\nnoise\n[1]\n{"errors": 2}\n3\n{"errors": ')
    assert said(tmp_path) == {"errors": 2}
    (tmp_path / "out").write_text("noise\n")
    assert said(tmp_path) is None


def test_each_peer_gets_its_own_cell_and_one_that_cannot_be_installed_says_so(
    peers_runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    isolation, file = peers_runner("isolation"), tmp_path / "cells.json"
    measured: list[tuple[str, str]] = []

    def cell(peer: str, kind: str, *more: Any) -> dict[str, Any]:
        measured.append((peer, kind))
        return {"seconds": 1}

    monkeypatch.setattr(isolation, "cell", cell)
    monkeypatch.setattr(isolation, "make", lambda name, where: "no network" if name == "fastmcp" else None)
    monkeypatch.setattr(isolation, "versions", lambda name, where: {name: "1"})
    given = ["isolation.py", "--peers", "playbill,mcp_client,fastmcp", "--kinds", "exit,kill", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", given)
    for _ in range(2):  # the second time, all is there
        isolation.main()
        assert measured == [("playbill", "exit"), ("mcp_client", "exit"), ("playbill", "kill"), ("mcp_client", "kill")]
    cells = json.loads(file.read_text())["cells"]
    assert [(each["kind"], each["peer"]) for each in cells] == [
        (kind, peer) for kind in ("exit", "kill") for peer in ("playbill", "mcp_client", "fastmcp")
    ]
    assert [each["peer"] for each in cells if each.get("could not") == "no network"] == ["fastmcp", "fastmcp"]


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("exit", {"back": [0.5, 0.7, 0.6]}, "by itself, 600 ms"),
        ("exit", {"back": [0.5], "hopeless": True}, "not by itself"),
        ("exit", {"hopeless": True, "asked": [0.25]}, "not by itself; when its user restarts it, 250 ms"),
        ("exit", {}, "not known"),
        ("kill", {"faults": 0}, "no process lives between calls"),
        ("hang", {"heals": False, "back": [0.5]}, "dead, and does not hang: nobody starts it again"),
        ("stdout", {"back": [0.1]}, "100 ms after it ended"),
        ("stdout", {"back": [0.1], "hopeless": True}, "not within 10 s after it ended"),
        ("stubborn", {"back": [4.0]}, "restarted, 4000 ms"),
        (
            "stubborn",
            {"words": {"a restart, which it refuses: no such operation": 3}},
            "it has no restart of one server",
        ),
    ],
)
def test_words_say_whether_a_bad_server_came_back(
    peers_runner: Runner, kind: str, more: dict[str, Any], words: str
) -> None:
    more = {"back": [], "asked": [], "words": {}, "faults": 3, "hopeless": False, "heals": True, **more}
    scene = SimpleNamespace(peer=SimpleNamespace(heals=more.pop("heals")), **more)
    assert peers_runner("under_fault").verdict(scene, kind) == words


async def test_errors_are_those_of_the_faulty_arm(peers_runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    under_fault = peers_runner("under_fault")

    class Peer:
        heals = True
        backend = "trio"

        async def call(self, *args: Any) -> str:
            return ""

    async def block(scene: Any, arm: Any, seconds: float, fault: Any, burn: float, *more: Any, **named: Any) -> Any:
        for load in arm.loads.values():
            load.failed("it failed")
            if fault is not None:
                load.failed("it failed")
        return 0.0, 0.0

    monkeypatch.setattr(under_fault, "block", block)
    monkeypatch.setattr(under_fault, "gc", SimpleNamespace(collect=int, freeze=int))
    ground = SimpleNamespace(spawned=list)
    cell: dict[str, Any] = {}
    await under_fault.measure(under_fault.Scene(ground, Peer()), cell, "exit", 3, 1.0)
    assert (cell["errors"], cell["errors without faults"]) == (2 * 2 * 3, 2 * 3)


def test_an_adapter_promises_nothing_that_it_does_not_say(peers_runner: Runner) -> None:
    adapter = peers_runner("adapter").Adapter
    assert (adapter.heals, adapter.asks_anew) == (False, False)
