"""The runners in ``benchmarks/`` are scripts beside one another, no package: a test imports them as they import each other."""

from __future__ import annotations

import importlib
import importlib.util
import sys
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


@pytest.fixture
def peers_runner(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import one of ``benchmarks/peers/``, which may have the name of another beside it, for this test alone."""
    # Last: a name that both folders have is, in an import, the one above.
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path, str(BENCHMARKS / "peers")])

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"peers_{name}", BENCHMARKS / "peers" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load
