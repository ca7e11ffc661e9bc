"""Everything public says what it is: read from the source, so that nothing is missed for not being imported.

A method is said to be what it is where it stands, or once: a class that fulfils a protocol need not repeat it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for folder in ("actors", "supervision") for path in (ROOT / folder).rglob("*.py"))

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public(body: list[ast.stmt]) -> list[Documented]:
    return [node for node in body if isinstance(node, Documented) and not node.name.startswith("_")]


def _is_overload_or_setter(node: Documented) -> bool:
    names = {ast.unparse(each).split(".")[-1] for each in node.decorator_list}
    return bool(names & {"overload", "setter", "override"})


def documented_methods(source: str) -> set[str]:
    """The names of the public methods of public classes that have a docstring."""
    classes = [node for node in _public(ast.parse(source).body) if isinstance(node, ast.ClassDef)]
    return {method.name for each in classes for method in _public(each.body) if ast.get_docstring(method)}


def undocumented(source: str, name: str, elsewhere: Collection[str] = ()) -> Iterator[str]:
    """The public things of a module that have no docstring: itself, its classes, their methods, its functions.

    Args:
        source: the module's text.
        name: how to call it in the answer.
        elsewhere: names of methods that another class documents.
    """
    tree = ast.parse(source)
    if tree.body and not ast.get_docstring(tree):
        yield name
    for thing in _public(tree.body):
        if not ast.get_docstring(thing):
            yield f"{name}:{thing.lineno}"
        if isinstance(thing, ast.ClassDef):
            for method in _public(thing.body):
                if method.name in elsewhere or _is_overload_or_setter(method):
                    continue
                if not ast.get_docstring(method):
                    yield f"{name}:{method.lineno} {thing.name}.{method.name}"


@cache
def elsewhere() -> frozenset[str]:
    """The names of the methods that a class documents somewhere."""
    return frozenset(name for path in FILES for name in documented_methods(path.read_text("utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_public_has_a_docstring(path: Path) -> None:
    assert list(undocumented(path.read_text("utf-8"), str(path.relative_to(ROOT)), elsewhere())) == []


def test_a_missing_docstring_is_seen() -> None:
    source = '"""Text."""\nclass A:\n    def f(self): ...\n    def _g(self): ...\ndef h():\n    """Text."""\nx = 1\n'
    assert list(undocumented(source, "m")) == ["m:2", "m:3 A.f"]
    assert list(undocumented(source, "m", {"f"})) == ["m:2"]
    assert list(undocumented("x = 1\n", "m")) == ["m"]
