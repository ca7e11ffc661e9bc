"""`benchmarks/http_faults.py` has a row for each thing that the faulty server can do, and says what came of it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from . import server

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark, as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("http_faults")


def test_every_mode_of_the_faulty_server_has_a_row_in_each_era_it_is_a_fault_in(faults: Any) -> None:
    modes = set(re.findall(r"^    (\w+)[= ]", str(server.__doc__), re.MULTILINE))
    assert len(modes) > 10
    played: dict[str, set[str]] = {"legacy": set(), "modern": set(), "sse": set()}
    for row in faults.chosen(None):
        for deeds in row.deeds.values():
            for deed in deeds if isinstance(deeds, list) else [deeds]:
                played.setdefault(row.era, set()).add("status" if "status" in deed else deed["do"])
                played[row.era] |= {"large"} & {deed["do"]}
    assert played["legacy"] >= modes
    assert played["modern"] >= modes
    # Over HTTP+SSE the answer to a POST says nothing.
    assert played["sse"] >= {"status", "reset", "close", "cut", "hang", "stall"}


async def test_a_row_says_what_its_caller_saw_when_and_what_became_of_both_servers(faults: Any) -> None:
    rows = faults.chosen(["500 [legacy]", "nobody listens [legacy]"])
    refused_for_good, nobody = await faults.measure(rows, "not asked for", rounds=1)
    assert refused_for_good.saw == "tool error: The call failed: HTTP 500 Internal Server Error"
    assert (refused_for_good.phase, refused_for_good.restarts, refused_for_good.measure) == ("ready", 0, "call")
    assert nobody.saw.startswith("ServerUnavailable: it is waiting to be restarted after: ")
    assert nobody.measure == "start"
    for seen in (refused_for_good, nobody):
        assert seen.calls > 5
        assert seen.failed == 0
        assert None not in (seen.ratio, seen.again)
    assert faults.wrong_in([refused_for_good, nobody]) == []
    nobody.failed = 1
    assert faults.wrong_in([nobody]) == ["nobody listens [legacy]: 1 calls of the neighbour failed"]
