"""What the package offers is what `__all__` lists, documented, and free of anything about MCP."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest
from playbill import supervision
from playbill.supervision.probe import STAGES

HERE = Path(inspect.getfile(supervision)).parent
PAGE = Path(__file__).parents[2] / "docs" / "supervision.md"
CONTRACT = {
    "Supervisor", "ChildSpec", "Restart", "Backoff", "Intensity", "Shutdown", "Cell", "Mailbox", "Ref", "Context", "Ask",
    "ActorDown", "StartFailed", "MailboxFull", "Stuck", "Escalated", "ChildState", "Event", "Gap", "TreeNode", "Counts",
}  # fmt: skip


def test_the_contract_is_public_and_all_is_sorted() -> None:
    assert set(supervision.__all__) >= CONTRACT
    assert list(supervision.__all__) == sorted(supervision.__all__)


@pytest.mark.parametrize("name", supervision.__all__)
def test_every_public_name_and_method_is_documented(name: str) -> None:
    thing = getattr(supervision, name)
    assert inspect.getdoc(thing)
    for member, value in vars(thing).items():
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.py")), ids=lambda path: path.name)
def test_only_the_standard_library_trio_attrs_and_outcome_are_imported(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "trio", "attrs", "outcome"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.level == 0 and node.module and node.module.split(".")[0] in allowed)


BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page_names_every_stage_and_every_restart_type() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert rows == set(STAGES)
    assert all(f"`{restart.name}`" in text for restart in supervision.Restart)


def test_the_page_has_an_example() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_of_the_page_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, str(PAGE), "exec"), {"__name__": "__main__"})
    printed = re.findall(r"# prints: (.*)", block)
    assert capsys.readouterr().out.splitlines() == printed
