"""Collecting makes half a million objects that stay: the garbage collector need not look through them, then or in any test."""

from __future__ import annotations

import gc


def pytest_configure() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()
