"""What an edit leaves alone, byte by byte: tokens, lines, line ends, indentation, the place of each comment.

The documents and edits are those of `test_editing_properties.py`, which holds what an edit means; the lexer here is another one
than that under test.
"""

from __future__ import annotations

import re

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from playbill.actors.edge.config.edit import edit_text
from playbill.actors.edge.config.read import Reader, read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool

from .test_editing_properties import documents, documents_and_names, edits, many, new_entries, tools

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[{}\[\]:,]|[^\s{}\[\]:,"/]+', re.DOTALL)
BREAK = re.compile(r"\r\n|\r|\n")
EMPTY = {"null", "[", "]", "{", "}"}


def tokens(text: str) -> list[str]:
    """All but white space and commas."""
    return [each for each in TOKEN.findall(text.removeprefix("\ufeff")) if each != ","]


def is_in(inner: list[str], outer: list[str]) -> bool:
    """Whether one list is left when some items are taken out of another."""
    rest = iter(outer)
    return all(any(each == other for other in rest) for each in inner)


def lines(text: str) -> list[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


def changed_lines(before: str, after: str) -> int:
    """How many lines of a text are not there any more, at the one place where it was edited."""
    old, new = lines(before), lines(after)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    end = 0
    while end < min(len(old), len(new)) - same and old[-1 - end] == new[-1 - end]:
        end += 1
    return len(old) - same - end


def companions(text: str) -> dict[str, str]:
    """Per comment with a number in it, the value that it stands behind on the same line, if it does."""
    out = {}
    for line in BREAK.split(text.removeprefix("\ufeff")):
        before = ""
        for each in TOKEN.findall(line):
            if re.match(r"//\s*\d+ |/\*\s*\d+ ", each):
                if before not in ("", "{", "["):
                    out[each] = before
            elif each != ",":
                before = each
    return out


def adds(config: Config, edit: Edit) -> bool:
    """Whether an edit can only add to a text, or set a value."""
    entry = config.get(edit.server)
    match edit:
        case SetTool(on=False) | SetPin(on=True) | SetEnabled(on=False):
            return True
        case SetTool(bare=bare, on=True):
            return entry is not None and bare not in entry.exclude
        case AddServer():
            return entry is None
    return False


def removes(config: Config, edit: Edit) -> bool:
    """Whether an edit can only take something out of a text."""
    entry = config.get(edit.server)
    match edit:
        case SetPin(on=False) | RemoveServer():
            return True
        case SetTool(bare=bare, on=True):
            return entry is not None and (entry.include is None or bare in entry.include)
    return False


def check_what_is_added(text: str, after: str, edit: Edit) -> None:
    """Nothing is taken away, and few lines are touched."""
    kept, new = tokens(text), tokens(after)
    if isinstance(edit, SetEnabled):
        for word in ("true", "false", "null"):  # one of these may be set
            kept, new = [each for each in kept if each != word], [each for each in new if each != word]
    # A null may give way to a list or an object.
    assert is_in([each for each in kept if each != "null"], new)
    # The line that gets a comma; that of a bracket that was empty over lines, or a comment that goes over lines, makes more.
    over_lines = re.search(r"[\[{]\s*[\r\n]\s*[\]}]|/\*[^*]*[\r\n]", text)
    assert changed_lines(text, after) <= (4 if over_lines else 1)


def check_comments(text: str, after: str, *, added: bool) -> None:
    """A comment stays behind what it stands behind; it may only lose it when something is removed."""
    was, now, here = companions(text), companions(after), tokens(after)
    for comment, value in was.items():
        if value in ("true", "false", "null", "]", "}"):
            continue  # set, or one of many
        if added:
            assert now.get(comment) == value
        elif value in here and here.count(value) == tokens(text).count(value):
            assert now.get(comment, value) == value


def check_ends(text: str, after: str) -> None:
    """Line ends, the byte-order mark, and what stands behind the last brace."""
    ends = set(BREAK.findall(text))
    assert not ends or set(BREAK.findall(after)) <= ends
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    assert after.count("\ufeff") == text.count("\ufeff")
    if not re.search(r"[/}]", text[text.rindex("}") + 1 :]):
        assert after.endswith(text[text.rindex("}") :])


SHORT = '{"mcpServers": {\n\t"a": {\n\t\t"command": "c", // 1 x\n\t\t"tools": {"exclude": [ "t" ]} // 2 x\n\t}\n}}\n'
LONG = SHORT.replace('"t" ]', '\n"t" // 3 x\n]')
NEW = AddServer(ServerEntry("b", command="c", args=("x",)))


@settings(many, max_examples=80)
@given(documents(), edits)
@example(SHORT, SetTool("a", "u", False))
@example(SHORT, SetTool("a", "t", True))
@example(SHORT, SetEnabled("a", False))
@example(SHORT, RemoveServer("a"))
@example("\ufeff" + SHORT, NEW)
@example(SHORT.replace("\n", "\r\n"), NEW)
@example(SHORT.replace("\n", "\r"), SetPin("a", "u", True))
@example(LONG, SetTool("a", "u", False))
@example(LONG.replace("\n", "\r\n"), SetTool("a", "u", False))
@example(LONG.replace('"t" ', '"t", '), SetTool("a", "u", False))
@example(LONG.replace('"t" // 3 x', '"t", // 3 x\n"u" // 4 x'), SetTool("a", "u", True))
@example(LONG.replace('"t" // 3 x', '"t", // 3 x\n"u" // 4 x'), SetTool("a", "t", True))
def test_an_edit_touches_nothing_but_its_own(text: str, edit: Edit) -> None:
    config = read_config(text)
    after, (refused,) = edit_text(text, [edit])
    if refused is not None:
        assert after == text
        return
    check_ends(text, after)
    if after == text:
        return
    added = adds(config, edit)
    check_comments(text, after, added=added)
    if added:
        check_what_is_added(text, after, edit)
    elif removes(config, edit):
        assert is_in(tokens(after), tokens(text))


@settings(many, max_examples=30)
@given(documents(), new_entries)
@example(SHORT, ServerEntry("b", command="c", args=("x",), env={"K": "v"}))
@example(SHORT.replace("\t", "      "), ServerEntry("b", command="c", env={"K": "v"}))
def test_a_server_that_is_added_begins_its_line_as_its_neighbours_do(text: str, entry: ServerEntry) -> None:
    document = Reader().read(text)
    assume(document.config.get(entry.name) is None and document.entries)
    assume(not (document.bare and entry.name == "servers"))  # beside a bare map that would be its key: refused
    last = document.entries[-1]
    own = re.search(r"(?:\r\n|\r|\n)([ \t]*)\Z", document.source.text[: last.start])
    assume(own is not None)
    assert own is not None
    after, (refused,) = edit_text(text, [AddServer(entry)])
    assert refused is None
    added = Reader().read(after).member(entry.name)
    assert added is not None
    assert re.search(r"(?:\r\n|\r|\n)([ \t]*)\Z", after[: added.start])[1] == own[1]  # type: ignore[index]
    inner = re.match(r"\{(?:\r\n|\r|\n)([ \t]*)\"", after[added.at :])
    assert inner is not None
    assert inner[1].startswith(own[1])
    assert len(inner[1]) > len(own[1])


@settings(many, max_examples=8)
@given(documents_and_names(), st.lists(tools, min_size=1, max_size=3, unique=True))
def test_hiding_some_tools_and_showing_them_in_any_order_gives_back_every_byte(
    drawn: tuple[str, str], some: list[str]
) -> None:
    text, name = drawn
    entry = read_config(text).get(name)
    assert entry is not None
    document = Reader().read(text)
    there = document.member(name)
    assert there is not None
    # Only where the list is there and holds something: what is made and goes again is held elsewhere.
    raw = there.value if isinstance(there.value, dict) else {}
    assume(any(raw.get(key) for key in ("disabledTools", "excludeTools")))
    assume(all(entry.allows(each) for each in some))
    assume(
        not re.search(r"\[[ \t\r\n]+\]", text)
    )  # of a list that was empty over lines, the white space is not given back
    hidden, first = edit_text(text, [SetTool(name, each, False) for each in some])
    shown, second = edit_text(hidden, [SetTool(name, each, True) for each in reversed(some)])
    assert (first, second) == ([None] * len(some), [None] * len(some))
    assert shown == text or re.search(r"/\*", text)
