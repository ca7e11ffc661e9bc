"""The line of the list item that hides a tool."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.read import Reader, read_config
from playbill.actors.edge.config.scopes import ScopedStore
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState
from playbill.actors.model.diff import launch_key
from playbill.actors.model.edits import SetTool
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.status import ServerStatus, ToolDef
from playbill.actors.model.why import Why, why

TEXT = """\
// lists of all kinds
{ "mcpServers": {
  "a": {
    "command": "a",
    "tools": {
      "exclude": [ // these
        "one", "two",
        /* and */ "three",
        "two"
      ]
    },
    "disabledTools": ["four"]
  },
  "b": {"command": "b",
    "enabledTools":
      ["one"],
    "excludeTools": ["one"]},
  "c": { "command": "c", "tools": [
      "one"
  ] },
  "d": { "command": "d" }
} }
"""


def tell(config: Config, server: str, bare: str) -> Why:
    names = ("one", "two", "three", "four")
    status = ServerStatus(tools=tuple(ToolDef(name, description="d") for name in names))
    snapshot = project(ConfigState(1, config), dict.fromkeys("abcd", status), (), Budget())
    return why(snapshot, server, bare)


def test_the_line_of_the_item_or_of_the_allow_list_is_told() -> None:
    config = read_config(TEXT, "/etc/mcp.json")
    lines = {
        (server, bare): tell(config, server, bare).line for server in "abcd" for bare in ("one", "two", "three", "four")
    }
    assert lines == {
        ("a", "one"): 7, ("a", "two"): 7, ("a", "three"): 8, ("a", "four"): 12,
        ("b", "one"): 17, ("b", "two"): 15, ("b", "three"): 15, ("b", "four"): 15,
        ("c", "one"): None, ("c", "two"): 18, ("c", "three"): 18, ("c", "four"): 18,
        ("d", "one"): None, ("d", "two"): None, ("d", "three"): None, ("d", "four"): None,
    }  # fmt: skip
    told = tell(config, "a", "three")
    assert str(told).endswith("excluded by the entry 'a' (/etc/mcp.json:8)")
    assert (told.file, told.line) == ("/etc/mcp.json", 8)
    assert str(tell(config, "b", "two")).endswith("not in the include list of the entry 'b' (/etc/mcp.json:15)")


def test_of_several_allow_lists_the_line_of_the_first_one_that_counts_is_told() -> None:
    text = '{"a": {\n"command": "a",\n"includeTools": ["one"],\n"enabledTools": ["two"]}}'
    config = read_config(text, "x")
    assert [tell(config, "a", bare).line for bare in ("one", "two", "three")] == [None, None, 4]


def test_windows_and_old_mac_line_ends_count_too() -> None:
    for eol in ("\r\n", "\r"):
        assert tell(read_config(TEXT.replace("\n", eol), "x"), "a", "three").line == 8


def test_an_item_that_moved_within_its_entry_is_told_where_it_is_now_and_starts_nothing_anew() -> None:
    reader = Reader("x")
    before = reader.read(TEXT).config
    text = TEXT.replace('/* and */ "three"', '\n\n"three"')
    after = reader.read(text, before).config
    for was, now in zip(before.servers, after.servers, strict=True):
        assert evolve(now, line=was.line) == was, "in whatever matters to a server"
        assert launch_key(now) == launch_key(was)
    assert tell(after, "a", "three").line == 10
    # The projection takes it up, also when it remembers the row.
    memo, status = Memo(), {"a": ServerStatus(tools=(ToolDef("three"),))}
    first = project(ConfigState(1, before), status, (), Budget(), None, memo)
    second = project(ConfigState(2, after), status, (), Budget(), first, memo)
    assert (why(first, "a", "three").line, why(second, "a", "three").line) == (8, 10)


def test_an_item_that_we_write_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(TEXT)
    store = FileStore(path)
    config = store.load()
    written = store.edit([SetTool("d", "one", False), SetTool("a", "one", True)], config)
    config = written.config
    text = path.read_text().splitlines()
    for server, bare in (("d", "one"), ("a", "three"), ("a", "two")):
        line = tell(config, server, bare).line
        assert line is not None
        assert f'"{bare}"' in text[line - 1]


def test_lines_added_above_an_entry_that_did_not_change_count() -> None:
    reader = Reader("/etc/mcp.json")
    first = reader.read(TEXT).config
    before = tell(first, "a", "three").line
    moved = reader.read("// one more\n// and another\n" + TEXT, previous=first).config
    assert before is not None
    assert tell(moved, "a", "three").line == before + 2


def test_a_line_more_at_the_top_makes_no_value_of_the_model_anew() -> None:
    reader = Reader("/etc/mcp.json")
    before = reader.read(TEXT).config
    after = reader.read("\n" + TEXT, before).config
    memo, status = Memo(), dict.fromkeys("abcd", ServerStatus(tools=(ToolDef("three"), ToolDef("two"))))
    first = project(ConfigState(1, before), status, (), Budget(), None, memo)
    second = project(ConfigState(2, after), status, (), Budget(), first, memo)
    assert (why(first, "a", "three").line, why(second, "a", "three").line) == (8, 9)
    pairs = zip(first.model.servers, second.model.servers, strict=True)
    assert all(was is now for was, now in pairs)


def test_of_a_server_that_is_there_twice_the_first_place_is_told() -> None:
    text = """{"mcpServers": {
        "a": {"command": "x"},
        "b": {"command": "x", "tools": {"exclude": ["t"]}},
        "a": {"command": "y"}
    }}"""
    config = read_config(text)
    assert (config.line("a"), config.line("b"), config.line("b", "t")) == (2, 3, 3)


def lines_of(*entries: str, above: int = 0) -> str:
    """A file with an entry a line, from the third on, and lines above."""
    return "{\n" + "\n" * above + '"mcpServers": {\n' + ",\n".join(entries) + "\n}}\n"


def test_of_several_files_the_place_is_that_of_the_entry_that_is_in_force_and_follows_it(tmp_path: Path) -> None:
    project, user = tmp_path / ".mcp.json", tmp_path / "user.json"
    hiding = '"a": {"command": "x", "tools": {"exclude": ["t"]}}'
    project.write_text(lines_of('"b": {"command": "x"}', hiding))
    user.write_text(lines_of('"c": {"command": "x"}', '"d": {"command": "y"}', '"a": {"command": "far"}'))
    store = ScopedStore(tmp_path, user=user, trust=TrustStore(tmp_path / "trust.json"))
    config = store.load()
    assert [config.line(name) for name in "bacde"] == [3, 4, 3, 4, None]
    assert config.line("a", "t") == 4
    assert store.load(config) is config
    # Only one of the files moves, and says the same.
    project.write_text(lines_of('"b": {"command": "x"}', hiding, above=2))
    moved = store.load(config)
    assert moved == config
    assert [moved.line(name) for name in "bacd"] == [5, 6, 3, 4]
    assert [config.line(name) for name in "bacd"] == [3, 4, 3, 4], "a configuration does not change"
    assert moved.get("a") is config.get("a")
    assert store.load(moved) is moved


def test_of_two_files_with_lists_each_tool_is_led_to_its_own(tmp_path: Path) -> None:
    project, user = tmp_path / ".mcp.json", tmp_path / "user.json"
    project.write_text(lines_of('"a": {"command": "x", "tools": {\n"include": ["u"]}}'))
    user.write_text(lines_of('"a": {"command": "x"}', '"b": {"command": "x", "tools": {"exclude": [\n"t"]}}'))
    store = ScopedStore(tmp_path, user=user, trust=TrustStore(tmp_path / "trust.json"))
    config = store.load()
    assert [config.line("a", "t"), config.line("b", "t"), config.line("b")] == [4, 5, 4]
    user.write_text(lines_of('"a": {"command": "x"}', '"b": {"command": "x", "tools": {"exclude": [\n"t"]}}', above=1))
    assert store.load(config).line("b", "t") == 6


def test_a_tool_in_the_exclude_list_is_led_there_though_an_allow_list_leaves_it_out_too() -> None:
    text = """{"mcpServers": {
        "a": {"command": "x", "tools": {"exclude": ["t"],
              "include": ["u"]}}
    }}"""
    config = read_config(text)
    assert (config.line("a", "t"), config.line("a", "v")) == (2, 3)
