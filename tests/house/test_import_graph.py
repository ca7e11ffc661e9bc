"""The rings hold: who may import whom, read from the source without importing it.

The table `RULES` below is the design's. Three kinds of import are told apart: at import, in a function, for types only.
A circle of the first kind breaks at run time, so there is none. The rules hold for all three, unless the table names a
package as one that may be imported for types only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from attrs import field, frozen

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"playbill.actors": ROOT / "actors", "playbill.supervision": ROOT / "supervision"}

WHEN_RUN = "at import"
WHEN_CALLED = "in a function"
FOR_TYPES = "for types only"


@frozen
class Import:
    """One imported module, by its absolute name.

    Args:
        source: the importing module.
        target: the imported one; of ours always a module that exists, else the top-level package or its submodule.
        kind: ``at import``, ``in a function`` or ``for types only``.
        line: where, 1-based.
    """

    source: str
    target: str
    kind: str
    line: int


@cache
def modules() -> dict[str, Path]:
    """Every module of the two packages, by name."""
    found: dict[str, Path] = {}
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join([package, *parts])] = path
    return found


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _statements(body: list[ast.stmt], kind: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, kind
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _statements(node.body, FOR_TYPES)
            yield from _statements(node.orelse, kind)
        else:
            inner = WHEN_CALLED if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else kind
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, []), inner if kind != FOR_TYPES else kind)
            for handler in getattr(node, "handlers", []) + getattr(node, "cases", []):
                yield from _statements(handler.body, inner)


def imports_of(module: str, path: Path, source: str, known: frozenset[str]) -> list[Import]:
    """What one module imports, relative names made absolute.

    Args:
        module: its name.
        path: its file; an ``__init__.py`` is its own package.
        source: its text.
        known: all modules of ours, so that ``from .a import b`` is told apart from ``from .a.b import …``.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for node, kind in _statements(ast.parse(source, str(path)).body, WHEN_RUN):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            targets = []
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                targets.append(deeper if deeper in known else base)
        found += [Import(module, target, kind, node.lineno) for target in dict.fromkeys(targets)]
    return found


@cache
def all_imports() -> list[Import]:
    """What every module of ours imports."""
    ours = modules()
    known = frozenset(ours)
    return [each for name, path in ours.items() for each in imports_of(name, path, path.read_text("utf-8"), known)]


def is_stdlib(name: str) -> bool:
    """Whether a module name is the standard library's."""
    return name.split(".")[0] in sys.stdlib_module_names


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The cycles of a graph, each as its nodes in order: one for each strongly connected part (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1 or node in edges.get(node, ()):
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@frozen
class Rule:
    """What the files of one room may import.

    Args:
        room: module prefixes, without ``playbill.``, that the rule is for; the longest prefix decides.
        ours: module prefixes of ours, besides the room itself.
        others: top-level names of other packages, besides the standard library.
        types_only: names allowed under ``if TYPE_CHECKING`` in addition.
    """

    room: str
    ours: frozenset[str] = field(default=frozenset(), converter=_names)
    others: frozenset[str] = field(default=frozenset(), converter=_names)
    types_only: frozenset[str] = field(default=frozenset(), converter=_names)


MODEL = "actors.model"
PORTS = "actors.ports"
SUPERVISION = "supervision"
CAST = ("actors.server", "actors.coordinator", "actors.projector")
MEET = ("actors.board", "actors.line", "actors.desk", "actors.watches", "actors.offering")
"""Where the cast meets: the latest values, the lines that calls go through, the requests and what was done of them; and what
a server actor does besides its tools."""
HOUSE = (
    "actors.host",
    "actors.again",
    "actors.asking",
    "actors.calls",
    "actors.deadline",
    "actors.given",
    "actors.refusal",
    "actors.routes",
    "actors.natives",
    "actors.operations",
    "actors.house",
    "actors.opening",
    "actors.sources",
    "actors.view",
    "actors.readiness",
    "actors.inspecting",
    "actors.logging_in",
    "actors.reading",
)
"""What joins all of it."""
PICKER_VIEW = tuple(
    f"actors.picker.{name}"
    for name in ("boxes", "dispatch", "outlet", "paint", "palette", "terminal", "ungroup", "view", "walker")
)
SDK = ("mcp", "mcp_types")
TELEMETRY = "actors.telemetry"
"""Imported by whatever does something worth telling, as `logging` is."""

RULES = [
    # Supervision knows nothing of MCP, nor of actors that speak it.
    Rule(SUPERVISION, others={"trio", "attrs", "outcome"}),
    # What a JSON Schema means is asked of those who know; only a schema with references loads them.
    Rule(MODEL, others={"attrs", "jsonschema", "referencing"}),
    Rule(PORTS, ours={MODEL, "actors.beyond"}, others={"attrs"}),
    Rule("actors.beyond", ours={MODEL}, others={"attrs"}),
    # The API alone: the SDK is the program's, and what is imported of it is imported by others first.
    Rule(TELEMETRY, ours={MODEL, PORTS}, others={"attrs", "trio", "opentelemetry"}),
    Rule("actors.edge", ours={MODEL, PORTS}, others={"attrs", "trio", *SDK}),
    # pydantic reads signatures and writes JSON.
    Rule("actors.edge.signature", ours={MODEL, "actors.edge.checked"}),
    Rule("actors.edge.checked", ours={MODEL}, others={"pydantic", "pydantic_core"}),
    Rule("actors.edge.results", others={"attrs", "pydantic_core", *SDK}),
    Rule(
        "actors.edge.config",
        ours={MODEL, PORTS},
        others={"attrs", "cattrs", "trio", "filelock", "platformdirs", "watchfiles"},
    ),
    Rule(
        "actors.edge.wire",
        ours={MODEL, PORTS, TELEMETRY, "actors.edge.config"},
        # What the SDK is made of comes with it: pydantic checks and pydantic_core reads JSON, httpx2 is its HTTP client, its
        # streams are anyio's, and a trace goes on through a call by opentelemetry.
        others={"attrs", "trio", *SDK, "pydantic", "pydantic_core", "httpx2", "httpcore2", "anyio", "opentelemetry"},
    ),
    # Logins: they know how a remote server is spoken to, and who speaks to it is handed one.
    Rule(
        "actors.edge.auth",
        ours={MODEL, "actors.edge.config", "actors.edge.wire"},
        others={"attrs", "trio", *SDK, "pydantic", "httpx2", "platformdirs"},
    ),
    # The cast: they meet through values and refs, and never import one another.
    *(
        Rule(name, ours={MODEL, PORTS, TELEMETRY, SUPERVISION, *MEET}, others={"trio", "attrs"}, types_only=SDK)
        for name in CAST
    ),
    Rule("actors.board", ours={MODEL, SUPERVISION, PORTS, "actors.line", "actors.watches"}, others={"trio", "attrs"}),
    Rule("actors.watches", ours={MODEL, SUPERVISION}, others={"trio", "attrs"}),
    Rule("actors.offering", ours={MODEL, PORTS, "actors.board"}, others={"trio"}),
    Rule("actors.line", ours={MODEL, PORTS}, others={"trio", "attrs"}),
    Rule("actors.desk", ours={MODEL}, others={"attrs"}),
    # Small servers that ship with the package: programs run by path, their folder first on the path.
    Rule("actors.servers", others={"_stdio"}),
    # The house joins everything.
    *(
        Rule(
            name,
            ours={MODEL, PORTS, TELEMETRY, SUPERVISION, "actors.edge", *MEET, *CAST, *HOUSE},
            others={"trio", "attrs", *SDK},
        )
        for name in HOUSE
    ),
    # The picker decides by values alone; its view draws with urwid and gives operations to whatever is like a host.
    Rule("actors.picker", ours={MODEL}, others={"attrs"}),
    *(Rule(name, ours={MODEL, "actors.picker"}, others={"attrs", "trio", "urwid"}) for name in PICKER_VIEW),
    Rule("actors.cli", ours={"actors"}, others={"trio", "attrs", "cyclopts", "rich", *SDK}),
    # It stands in for the transport of the HTTP client too.
    Rule("actors.testing", ours={"actors", SUPERVISION}, others={"trio", "attrs", "outcome", "pytest", "httpx2", *SDK}),
]

LONGEST_FILE = 500
"""Lines; the median is about 150."""


def _under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def _short(name: str) -> str:
    return name.removeprefix("playbill.")


def rule_of(module: str) -> Rule | None:
    """The rule whose room a module is in, or None."""
    fitting = [rule for rule in RULES if _under(_short(module), rule.room)]
    return max(fitting, key=lambda rule: len(rule.room), default=None)


def broken(each: Import) -> str | None:
    """Which rule an import breaks, in one line, or None."""
    rule = rule_of(each.source)
    where = f"{each.source}:{each.line} imports {each.target} ({each.kind})"
    if _under(each.target, "actors") or _under(each.target, "supervision"):
        return f"{where}: only relative imports, `supervision` alone is another package"
    if rule is None:
        return None
    if each.target.startswith("playbill"):
        target = _short(each.target)
        if any(_under(target, allowed) for allowed in (rule.room, *rule.ours)):
            return None
        return f"{where}: {rule.room} may import only {sorted(rule.ours)} of ours"
    top = each.target.split(".")[0]
    if is_stdlib(top) or top == "__future__" or top in rule.others:
        return None
    if each.kind == FOR_TYPES and top in rule.types_only:
        return None
    return f"{where}: {rule.room} may import only {sorted(rule.others)} besides the standard library"


def test_every_import_is_one_its_ring_allows() -> None:
    assert [line for each in all_imports() if (line := broken(each))] == []


def test_every_module_is_in_a_room_of_the_table() -> None:
    facades = {"playbill.actors"}
    assert [name for name in modules() if name not in facades and rule_of(name) is None] == []


def test_no_module_imports_itself_in_a_circle() -> None:
    edges: dict[str, set[str]] = {name: set() for name in modules()}
    for each in all_imports():
        if each.kind == WHEN_RUN and each.target in edges:
            edges[each.source].add(each.target)
    assert cycles(edges) == []


def test_no_room_depends_on_a_room_that_depends_on_it() -> None:
    """The same for whole rooms, with what is imported in functions: a hidden import is a dependency too."""
    edges: dict[str, set[str]] = {}
    for each in all_imports():
        source, target = rule_of(each.source), rule_of(each.target)
        if source and target and source is not target and each.kind != FOR_TYPES:
            edges.setdefault(source.room, set()).add(target.room)
    assert cycles(edges) == []


def test_nothing_imports_the_command_line_or_the_test_kit() -> None:
    ends = ("actors.cli", "actors.testing")
    wrong = [
        f"{each.source}:{each.line}"
        for each in all_imports()
        for end in ends
        if _under(_short(each.target), end) and not any(_under(_short(each.source), other) for other in ends)
    ]
    assert wrong == []


def test_only_the_transports_file_chooses_mcp_transports() -> None:
    """The SDK's transports are opened in one file, as are processes; and one file decides which of the two it is."""
    openers = {
        "mcp.client.stdio": "nobody",
        "mcp.client.sse": "remote.sdk_streams",
        "mcp.client.streamable_http": "remote.sdk_streams",
        "mcp.shared.memory": "streams",
        "mcp.server": "nobody",
        "playbill.actors.edge.wire.streams": "transports",
        "playbill.actors.edge.wire.given": "transports",
        "playbill.actors.edge.wire.remote.opening": "transports",
        "playbill.actors.edge.wire.remote.sdk_streams": "remote.opening",
        "playbill.actors.edge.wire.stdio": "transports",
    }
    wrong = [
        f"{each.source}:{each.line} imports {each.target}"
        for each in all_imports()
        for opened, opener in openers.items()
        if _under(each.target, opened)
        and not _under(each.source, opened)
        and each.source != f"playbill.actors.edge.wire.{opener}"
        and each.kind != FOR_TYPES
    ]
    assert wrong == []


def test_the_sdk_is_imported_only_when_it_is_used() -> None:
    """`import mcp` costs most of a second: `playbill list` and an importing program do not pay it."""
    allowed = {"playbill.actors.edge", "playbill.actors.servers", "playbill.actors.testing"}
    wrong = [
        f"{each.source}:{each.line} imports {each.target}"
        for each in all_imports()
        if each.target.split(".")[0] in SDK
        and each.kind == WHEN_RUN
        and not any(_under(each.source, room) for room in allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", ["actors", "supervision", "tests", "benchmarks", "examples"])
def test_no_file_is_too_long(folder: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: count for name, count in lengths.items() if count > LONGEST_FILE} == {}


# The checks themselves, on sources made up for it: a rule that cannot fail holds nothing.


def _imports(module: str, source: str) -> list[Import]:
    return imports_of(module, Path("made_up.py"), source, frozenset({*modules(), module}))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("playbill.actors.model.x", "import trio"),
        ("playbill.actors.model.x", "def f():\n    import cattrs"),
        ("playbill.actors.model.x", "from ..edge import y"),
        ("playbill.actors.server", "from .projector import Projector"),
        ("playbill.actors.coordinator", "from . import server"),
        ("playbill.actors.projector", "import mcp"),
        ("playbill.actors.edge.x", "from ...supervision import Cell"),
        ("playbill.actors.edge.x", "from ..host import Host"),
        ("playbill.actors.host", "from .cli import main"),
        ("playbill.actors.picker.rows", "import urwid"),
        ("playbill.actors.picker.rows", "import trio"),
        ("playbill.actors.picker.reducer", "from ..edge.wire import y"),
        ("playbill.actors.picker.view", "from ..host import Host"),
        ("playbill.supervision.x", "from ..actors.model.config import Config"),
        ("playbill.supervision.x", "from opentelemetry import trace"),
        ("playbill.actors.telemetry.x", "from ..board import Board"),
        ("playbill.supervision.x", "try:\n    import mcp\nexcept ImportError:\n    pass"),
        ("playbill.actors.host", "from actors.model.config import Config"),
    ],
)
def test_a_forbidden_import_is_seen(module: str, source: str) -> None:
    known = frozenset({*modules(), *(f"playbill.{name}" for name in CAST), "playbill.actors.cli"})
    found = imports_of(module, Path("made_up.py"), source, known)
    assert [broken(each) for each in found] != [None] * len(found)


def test_an_allowed_import_is_not_complained_of() -> None:
    source = "from __future__ import annotations\nimport json\nfrom attrs import frozen\nfrom .config import Config\n"
    assert [broken(each) for each in _imports("playbill.actors.model.x", source)] == [None] * 4


def test_imports_for_types_and_in_functions_are_told_apart() -> None:
    source = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mcp\nelse:\n    import json\n"
        "class A:\n    def f(self):\n        with x:\n            import trio\n"
    )
    kinds = {each.target: each.kind for each in _imports("playbill.actors.model.x", source)}
    assert kinds == {"typing": WHEN_RUN, "mcp": FOR_TYPES, "json": WHEN_RUN, "trio": WHEN_CALLED}


def test_a_circle_is_seen() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert cycles({"a": {"b"}, "b": set()}) == []
