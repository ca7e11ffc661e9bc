"""Determinism of these tests: no clock, no I/O; hypothesis draws the same examples in every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("model", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("model")
