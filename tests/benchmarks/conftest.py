"""The runners in ``benchmarks/`` are scripts beside one another, no package: a test imports them as they import each other."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a runner by the name of its file."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module
