"""The cost of imports: the median of the counted rounds, over trio, with and without the interpreter's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

Runner = Callable[[str], ModuleType]


def test_the_round_that_compiles_does_not_count_and_arms_take_turns(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = runner("imports")
    ran: list[str] = []

    def cpu(code: str, environment: dict[str, str]) -> float:
        ran.append(code)
        turn = len(ran) // 3 if len(ran) % 3 else len(ran) // 3 - 1
        return [900.0, 10.0, 30.0, 11.0][turn]

    monkeypatch.setattr(imports, "cpu", cpu)
    monkeypatch.setattr(imports, "ARMS", {"a": "1", "b": "2", "c": "3"})
    assert imports.measure(3) == {"a": 11.0, "b": 11.0, "c": 11.0}
    assert ran == ["1", "2", "3"] * 4


def test_net_is_without_what_a_bare_interpreter_costs(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imports = runner("imports")
    monkeypatch.setattr(imports, "measure", lambda rounds: {"a bare interpreter": 50.0, "trio": 250.0, "more": 350.0})
    monkeypatch.setattr(sys, "argv", ["imports.py"])
    imports.main()
    rows = [line.rsplit(maxsplit=3) for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["a bare interpreter", "50.0", "0.20", "0.00"],
        ["trio", "250.0", "1.00", "1.00"],
        ["more", "350.0", "1.40", "1.50"],
    ]


def test_an_arm_that_fails_ends_the_run(runner: Runner) -> None:
    imports = runner("imports")
    with pytest.raises(SystemExit, match="this failed"):
        imports.cpu("raise SystemExit(1)", dict(os.environ))
