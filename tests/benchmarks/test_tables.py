"""The tables show the figures that their heads name, and every error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .test_report import ABOUT

Runner = Callable[[str], ModuleType]

FAULTY, BUSY, CALM = 7, 3, 5
"""Errors of each kind of load in each arm."""


def load(errors: int) -> dict[str, Any]:
    return {"p50": 1.5, "p99": 2.5, "p99.9": 3.5, "max": 4.5, "errors": errors, "calls": 1000}


def arm(errors: int) -> dict[str, Any]:
    used = {"host CPU %": 11.5, "CPU below %": 12.5, "burned %": 13.5, "host MB": 14.5}
    back = {"median ms": 600.0, "max ms": 700.0}
    return {"loads": {"sequential": load(errors), "16 at once": load(errors)}, **used, "faults": 2, "back": back}


def cell(kind: str, bad: int) -> dict[str, Any]:
    arms = {"calm": arm(CALM), "faulty": arm(FAULTY), "busy": arm(BUSY)}
    ratios = {"sequential": {"median": 1.05, "pooled": 8.0}, "16 at once": {"median": 1.25, "pooled": 9.0}}
    return {"kind": kind, "servers": 10, "bad": bad, "arms": arms, "p99 over busy": ratios}


def test_isolation_tells_all_errors_of_the_faulty_arm_and_each_figure_under_its_head(runner: Runner) -> None:
    cells = [cell("nobody", 0), cell("exit", 5)]
    lines = runner("tables").isolation({"about": ABOUT, "cells": cells}).splitlines()
    (words,) = [each for each in lines if each.startswith("Calls of healthy servers")]
    assert words.startswith("Calls of healthy servers while others misbehaved: 2,000, of which 14 failed.")
    assert "1 of 2 at most 1.1, median 1.15, worst 1.25; where nobody misbehaves: 1.05, 1.25." in words
    assert "| exits in a call | 1.05 / 1.25, 14 errors |" in lines
    assert "| exits in a call | 600 (700) |" in lines
    at = lines.index(
        "|  | arm | p50 | p99 | p99.9 | max | errors | calls | CPU of the host | of all below it | burned | host MB |"
    )
    assert lines[at + 3 :] == [
        "|  | faulty | 1.5 | 2.5 | 3.5 | 4.5 | 7 | 1,000 | 11.5 | 12.5 | 13.5 | 14.5 |",
        "|  | busy | 1.5 | 2.5 | 3.5 | 4.5 | 3 | 1,000 | 11.5 | 12.5 | 13.5 | 14.5 |",
    ]


def test_a_fault_that_changed_a_call_in_virtual_time_is_told(runner: Runner) -> None:
    results = {
        "about": {**ABOUT, "settings": {"servers": 8}},
        "faults": 50,
        "calls": 680,
        "differences": ["a crash: x"],
    }
    text = runner("tables").isolation_exact(results)
    assert "49 of 50 changed no call" in text
    assert text.endswith("\n- differs: a crash: x")


def test_results_of_a_quick_run_say_that_they_say_nothing(runner: Runner) -> None:
    made = runner("tables").made
    assert "say nothing" not in made({"about": ABOUT})
    assert "say nothing" in made({"about": {**ABOUT, "settings": {"quick": True}}})
    assert "say nothing" in made({"about": {**ABOUT, "preliminary": "yes: made with --quick"}})


def beside_others(tables: ModuleType) -> dict[str, Any]:
    """Results in which each cell of Playbill has a number of its own."""
    names = [name for columns in tables.GROUPS.values() for name in columns]
    ours = {name: 100.0 + at for at, name in enumerate(names)}
    rows = {
        "all": {
            "playbill": {**ours, "connect + list 40, ms": 300.0, "restart by itself": "1234 ms"},
            "floor": {"connect + list 40, ms": 200.0},
            "fastmcp": {"could not": "it ended with an error"},
        }
    }
    return {"about": ABOUT, "rows": rows}


def test_beside_others_each_number_stands_under_its_head_and_what_could_not_be_says_so(runner: Runner) -> None:
    tables = runner("tables")
    results = beside_others(tables)
    found = results["rows"]["all"]["playbill"]
    lines = tables.peers(copy.deepcopy(results)).splitlines()
    for columns in tables.GROUPS.values():
        head = lines.index("|  | " + " | ".join(columns.values()) + " |")
        assert (
            lines[head + 2] == "| **Playbill** | " + " | ".join(tables.number(found[each]) for each in columns) + " |"
        )
        failed = "could not: it ended with an error"
        assert lines[head + 4] == "| fastmcp `Client` | " + " | ".join([failed] * len(columns)) + " |"


def test_the_front_page_divides_by_raw_pipes_and_shows_each_number_under_its_head(runner: Runner) -> None:
    tables = runner("tables")
    results = beside_others(tables)
    found = results["rows"]["all"]["playbill"]
    head, _, ours, other = tables.front({"peers": results}).splitlines()
    shown = dict(zip(*([each.strip() for each in line.split("|")[1:-1]] for line in (head, ours)), strict=True))
    assert shown["connect and list 40, over raw pipes"] == "× 1.50"
    for column, name in {
        "a call, µs": "call round trip, µs",
        "calls a second, 16 at once": "calls a second, 16 at once",
        "processes left after kill -9 of the program": "processes left after kill -9 of the program",
    }.items():
        assert shown[column] == f"{found[name]:.0f}"
    assert shown["a neighbour's crash"] == f"{found['neighbour of a crash, errors']:.0f} errors"
    assert shown["restarts a server by itself"] == "1.2 s"
    assert other.startswith("| fastmcp `Client` | the whole group ended |")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "1.05 / 1.25, 14 errors (6 in the busy arm)"),
        ({"faults": 0}, "did not strike"),
        ({"the group failed": "it was left"}, "the whole group failed: it was left"),
    ],
)
def test_a_peers_cell_tells_errors_and_whether_the_fault_struck(
    runner: Runner, more: dict[str, Any], words: str
) -> None:
    one = {**cell("exit", 3), "errors": 2 * FAULTY, "faults": 3, **more}
    assert runner("tables").share(one) == words


def test_what_a_restart_by_its_user_said_stands_beside_whether_it_came_back(runner: Runner) -> None:
    one = {"callable again": "not by itself", "words": {"other": 3, "its user's own restart: no such operation": 1}}
    assert runner("tables").again(one) == "not by itself; its user's own restart: no such operation"
