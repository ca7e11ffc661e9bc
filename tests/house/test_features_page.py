"""The table of features names tests, and each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import mcp_types
import pytest
from mcp_types import methods

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]


def is_there(file: str, name: str) -> bool:
    """Whether a file has a function of that name."""
    path = ROOT / file
    return path.is_file() and re.search(rf"^(?:async )?def {name}\(", path.read_text("utf-8"), re.M) is not None


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)), ids=lambda value: str(value))
def test_each_test_that_the_table_names_is_there(file: str, name: str) -> None:
    assert is_there(file, name)


def test_every_check_of_the_features_is_in_the_table() -> None:
    source = (ROOT / "tests/features/checks.py").read_text("utf-8")
    checks = re.search(r"^CHECKS.*?\n\}", source, re.M | re.S)
    assert checks is not None
    names = set(re.findall(r"^        (\w+),$", checks[0], re.M))
    assert len(names) > 15
    assert names == {name for file, name in NAMED if file.endswith("checks.py")}
    assert len(ROWS) >= 20


def test_every_method_and_capability_of_the_protocol_is_in_the_page() -> None:
    """Of both eras, as the installed SDK knows them."""
    maps = (
        methods.CLIENT_REQUESTS,
        methods.CLIENT_NOTIFICATIONS,
        methods.SERVER_REQUESTS,
        methods.SERVER_NOTIFICATIONS,
    )
    known = {method for each in maps for method, _ in each}
    assert len(known) > 25
    said = set(re.findall(r"`([\w./]+)`", PAGE))
    assert known - said == set()
    capabilities = {*mcp_types.ClientCapabilities.model_fields, *mcp_types.ServerCapabilities.model_fields}
    assert capabilities - said == set()


def test_a_test_that_is_not_there_is_seen() -> None:
    assert not is_there("tests/features/checks.py", "samplin")
    assert not is_there("tests/features/none.py", "sampling")
