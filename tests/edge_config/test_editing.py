"""Edits of a text, seen as a person sees them in the diff."""

from __future__ import annotations

import pytest
from playbill.actors.edge.config.edit import Draft, edit_text
from playbill.actors.edge.config.read import Reader
from playbill.actors.edge.config.slice import Slice
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool
from playbill.actors.model.errors import ConfigError, PlaybillError, ServerExists, UnknownServer

OFF = SetTool("a", "t", False)
ON = SetTool("a", "t", True)


def edited(text: str, *edits: Edit) -> str:
    after, refused = edit_text(text, edits, "f.json")
    assert [str(each) for each in refused if each is not None] == []
    return after


def refusal(text: str, edit: Edit) -> PlaybillError:
    after, (refused,) = edit_text(text, [edit], "f.json")
    assert after == text
    assert refused is not None
    return refused


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ('{"command":"c"}', OFF, '{"command":"c","tools":{"exclude":["t"]}}'),
        ('{"command": "c"}', OFF, '{"command": "c", "tools": {"exclude": ["t"]}}'),
        ('{"command": "c", "tools": {}}', OFF, '{"command": "c", "tools": { "exclude": ["t"] }}'),
        ('{"command": "c", "tools": { "exclude": ["t"] }}', ON, '{"command": "c", "tools": {}}'),
        ('{"command": "c", "tools": {"exclude": []}}', OFF, '{"command": "c", "tools": {"exclude": [ "t" ]}}'),
        ('{"command": "c", "tools": {"exclude": [ "t" ]}}', ON, '{"command": "c", "tools": {"exclude": []}}'),
        (
            '{"command": "c", "tools": {"pin": []}}',
            SetPin("a", "t", True),
            '{"command": "c", "tools": {"pin": [ "t" ]}}',
        ),
        ('{"command": "c", "tools": null}', OFF, '{"command": "c", "tools": {"exclude": ["t"]}}'),
        ('{"command": "c", "tools": {"exclude": null}}', OFF, '{"command": "c", "tools": {"exclude": ["t"]}}'),
        ('{"command": "c", "tools": {"x": 1}}', OFF, '{"command": "c", "tools": {"x": 1, "exclude": ["t"]}}'),
        ('{"command": "c", "disabledTools": []}', OFF, '{"command": "c", "disabledTools": ["t"]}'),
        ('{"command": "c", "disabledTools": ["t"]}', ON, '{"command": "c", "disabledTools": []}'),
        ('{"command": "c", "excludeTools": ["u",]}', OFF, '{"command": "c", "excludeTools": ["u", "t",]}'),
        # What is added to the last of several lists comes last in what they say together.
        (
            '{"command": "c", "excludeTools": ["v"], "disabledTools": ["u"]}',
            OFF,
            '{"command": "c", "excludeTools": ["v", "t"], "disabledTools": ["u"]}',
        ),
        (
            '{"command": "c", "includeTools": ["v"], "enabledTools": ["u"]}',
            ON,
            '{"command": "c", "includeTools": ["v", "t"], "enabledTools": ["u"]}',
        ),
        ('{"command": "c", "tools": ["*"]}', OFF, '{"command": "c", "tools": ["*"], "disabledTools": ["t"]}'),
        ('{"command": "c", "tools": {"exclude": ["t"]}}', ON, '{"command": "c"}'),
        (
            '{"command": "c", "tools": {"exclude": ["t", "u", "t"]}}',
            ON,
            '{"command": "c", "tools": {"exclude": ["u"]}}',
        ),
        (
            '{"command": "c", "tools": {"exclude": ["t" /* why */]}}',
            ON,
            '{"command": "c", "tools": {"exclude": [/* why */]}}',
        ),
        ('{"command": "c", "enabledTools": ["u"]}', ON, '{"command": "c", "enabledTools": ["u", "t"]}'),
        ('{"command": "c", "enabledTools": []}', ON, '{"command": "c", "enabledTools": ["t"]}'),
        ('{"command": "c", "enabledTools": ["u"]}', OFF, '{"command": "c", "enabledTools": ["u"]}'),
        (
            '{"command": "c", "enabledTools": ["u"], "disabledTools": ["t"]}',
            ON,
            '{"command": "c", "enabledTools": ["u", "t"], "disabledTools": []}',
        ),
        ('{"command": "c", "tools": ["u"], "disabledTools": ["t"]}', ON, '{"command": "c", "tools": ["u", "t"]}'),
        ('{"command": "c", "tools": ["*"], "disabledTools": ["t"]}', ON, '{"command": "c", "tools": ["*"]}'),
        (
            '{"command": "c", "tools": ["*"], "disabledTools": []}',
            OFF,
            '{"command": "c", "tools": ["*"], "disabledTools": [ "t" ]}',
        ),
        (
            '{"command": "c", "tools": ["*"], "disabledTools": [ "t" ]}',
            ON,
            '{"command": "c", "tools": ["*"], "disabledTools": []}',
        ),
        # The last of an allow-list, as enabling has put it there, is taken out of it; another is hidden.
        ('{"command": "c", "includeTools": ["u", "t"]}', OFF, '{"command": "c", "includeTools": ["u"]}'),
        ('{"command": "c", "includeTools": ["t"]}', OFF, '{"command": "c", "includeTools": []}'),
        ('{"command": "c", "tools": ["u", "t"]}', OFF, '{"command": "c", "tools": ["u"]}'),
        ('{"command": "c", "tools": ["t"]}', OFF, '{"command": "c", "tools": ["t"], "disabledTools": ["t"]}'),
        (
            '{"command": "c", "includeTools": ["t", "u"]}',
            OFF,
            '{"command": "c", "includeTools": ["t", "u"], "tools": {"exclude": ["t"]}}',
        ),
        (
            '{"command": "c", "includeTools": ["u",   "t"]}',
            OFF,
            '{"command": "c", "includeTools": ["u",   "t"], "tools": {"exclude": ["t"]}}',
        ),
        (
            '{"command": "c", "includeTools": ["u", "t"], "enabledTools": ["t"]}',
            OFF,
            '{"command": "c", "includeTools": ["u", "t"], "enabledTools": ["t"], "tools": {"exclude": ["t"]}}',
        ),
        (
            '{"command": "c", "disabled":  true, "x": 1}',
            SetEnabled("a", True),
            '{"command": "c", "disabled": false, "x": 1}',
        ),
        ('{"command": "c"}', SetPin("a", "t", True), '{"command": "c", "tools": {"pin": ["t"]}}'),
        ('{"command": "c", "tools": {"pin": ["t"]}}', SetPin("a", "t", False), '{"command": "c"}'),
        ('{"command": "c"}', SetEnabled("a", False), '{"command": "c", "disabled": true}'),
        ('{"command": "c", "disabled": true}', SetEnabled("a", True), '{"command": "c"}'),
        ('{"disabled": true, "command": "c"}', SetEnabled("a", True), '{"disabled": false, "command": "c"}'),
        ('{"command": "c", "disabled": false}', SetEnabled("a", False), '{"command": "c", "disabled":  true}'),
        ('{"command": "c", "disabled":  true}', SetEnabled("a", True), '{"command": "c", "disabled": false}'),
        ('{"command": "c", "disabled":false}', SetEnabled("a", False), '{"command": "c", "disabled":true}'),
        ('{"command": "c", "disabled":true}', SetEnabled("a", True), '{"command": "c", "disabled":false}'),
        ('{"disabled": false, "command": "c"}', SetEnabled("a", False), '{"disabled": true, "command": "c"}'),
        ('{"command": "c", "enabled": true}', SetEnabled("a", False), '{"command": "c", "enabled": false}'),
        ('{"command": "c", "enabled": false}', SetEnabled("a", True), '{"command": "c", "enabled": true}'),
        (
            '{"disabled": true, "enabled": false, "command": "c"}',
            SetEnabled("a", True),
            '{"disabled": false, "enabled": true, "command": "c"}',
        ),
    ],
)
def test_an_edit_of_an_entry_on_one_line(before: str, edit: Edit, after: str) -> None:
    for left, right in (('{"mcpServers": {"a": ', "}}"), ("// x\r\n{ 'servers': {'a':".replace("'", '"'), "},}\r\n")):
        assert edited(left + before + right, edit) == left + after + right


LINES = """{
    // my servers
    "mcpServers": {
        "a": {
            "command": "c", // the program
            "disabledTools": [
                "x", // never
                "y" // nor this
            ] // end of list
        }, // a
        /* the other */
        "b": {"command": "d"} // b
    },
    "z": 1
}
"""


def test_an_item_is_added_on_its_own_line_and_comments_stay_where_they_are() -> None:
    after = LINES.replace('"y" // nor this', '"y", // nor this\n                "t"')
    assert edited(LINES, OFF) == after
    assert edited(after, ON) == LINES


def test_a_removed_item_leaves_its_comment_behind() -> None:
    assert edited(LINES, SetTool("a", "x", True)) == LINES.replace('"x", // never', "// never")
    assert edited(LINES, SetTool("a", "y", True)) == LINES.replace('"x", // never', '"x" // never').replace(
        '"y" // nor this', "// nor this"
    )


def test_a_server_is_added_behind_the_last_one_in_the_style_of_the_file() -> None:
    entry = ServerEntry("n", command="npx", args=("-y", "p"), env={"K": "${K}"})
    new = """        "b": {"command": "d"}, // b
        "n": {
            "command": "npx",
            "args": ["-y", "p"],
            "env": {
                "K": "${K}"
            }
        }
"""
    after = LINES.replace('        "b": {"command": "d"} // b\n', new)
    assert edited(LINES, AddServer(entry)) == after
    assert edited(after, RemoveServer("n")) == LINES
    crlf = LINES.replace("\n", "\r\n")
    assert edited(crlf, AddServer(entry)) == after.replace("\n", "\r\n")


def test_a_removed_server_takes_its_line_and_leaves_the_comments_around_it() -> None:
    removed = edited(LINES, RemoveServer("a"))
    assert (
        removed
        == """{
    // my servers
    "mcpServers": {
        // a
        /* the other */
        "b": {"command": "d"} // b
    },
    "z": 1
}
"""
    )
    assert '"c", // the program' in edited(LINES, RemoveServer("b"))


def test_the_last_server_leaves_an_empty_map_that_can_be_filled_again() -> None:
    text = '{\n  "mcpServers": {\n    "a": {\n      "command": "c"\n    }\n  }\n}\n'
    empty = edited(text, RemoveServer("a"))
    assert empty == '{\n  "mcpServers": {}\n}\n'
    assert edited(empty, AddServer(ServerEntry("a", command="c"))) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{"mcpServers": {"n": {"command": "c"}}}'),
        ('{"x":1}', '{"x":1,"mcpServers":{"n":{"command":"c"}}}'),
        ('{"mcpServers": null}', '{"mcpServers": {"n": {"command": "c"}}}'),
        ('{"o": {"command": "d"}}', '{"o": {"command": "d"}, "n": {"command": "c"}}'),
        (
            '{\n\t"x": 1,\n}',
            '{\n\t"x": 1,\n\t"mcpServers": {\n\t\t"n": {\n\t\t\t"command": "c"\n\t\t}\n\t},\n}',
        ),
        (
            '{\n  "servers": {\n    // none yet\n  }\n}',
            '{\n  "servers": {\n    // none yet\n    "n": {\n      "command": "c"\n    }\n  }\n}',
        ),
    ],
)
def test_a_server_is_added_wherever_servers_are(before: str, after: str) -> None:
    assert edited(before, AddServer(ServerEntry("n", command="c"))) == after


def test_a_replaced_server_keeps_its_place() -> None:
    text = '{"mcpServers": {"a": {"command": "c", "x": 1}, /* b */ "b": {"command": "d"}}}'
    new = AddServer(ServerEntry("a", url="https://h", type="streamable-http", timeout=1500), replace=True)
    value = '{"type": "streamable-http", "url": "https://h", "timeout": 1500000}'
    assert edited(text, new) == text.replace('{"command": "c", "x": 1}', value)


def test_a_bom_and_names_that_utf_8_cannot_hold_survive() -> None:
    text = '\ufeff{"mcpServers": {"\\ud800": {"command": "c"}}}'
    assert edited(text, SetTool("\ud800", "é", False)) == text.replace('"c"', '"c", "tools": {"exclude": ["é"]}')
    after = edited(text, AddServer(ServerEntry("\udc00é", command="é")))
    assert after == text.replace('"c"}', '"c"}, "\\udc00\\u00e9": {"command": "é"}')


def test_no_edit_no_change() -> None:
    assert edited(LINES, ON, SetEnabled("a", True), SetPin("a", "t", False)) == LINES


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    error = refusal(LINES, SetTool("bb", "t", False))
    assert isinstance(error, UnknownServer)
    assert error.near == "b"
    assert isinstance(refusal(LINES, AddServer(ServerEntry("a", command="c"))), ServerExists)


@pytest.mark.parametrize(
    ("text", "edit", "words"),
    [
        ('{"mcpServers": {"a": 3}}', OFF, "f.json:1:17: mcpServers.a: this is not an object, and cannot be edited"),
        ('{"mcpServers": {"a": {"command": "c", "tools": 3}}}', OFF, "a.tools: cannot be edited: expected an object"),
        ('{"mcpServers": {"a": {"command": "c", "disabledTools": "t"}}}', OFF, "a.disabledTools: cannot be edited"),
        ('{"mcpServers": {"a": {"command": "c", "tools": []}}}', SetPin("a", "t", True), "expected an object, found a list"),
        ('{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}', OFF, "this server is there twice; keep one"),
        ('{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}', RemoveServer("a"), "this server is there twice"),
        ('{"o": {"command": "c"}, "a": 3}', AddServer(ServerEntry("a", command="c")), "this key is there already"),
        ("{}", AddServer(ServerEntry("a")), "cannot be written: there is no command and no url here"),
        ("{}", AddServer(ServerEntry("a", command="c", url="https://h")), "cannot be written"),
        ("{}", AddServer(ServerEntry("a", command="c", server=object())), "an object in memory cannot be written"),
        ("{}", AddServer(ServerEntry("a", command="c\0")), "command: a NUL character cannot be passed on"),
    ],
)  # fmt: skip
def test_what_cannot_be_edited_is_refused_and_nothing_changes(text: str, edit: Edit, words: str) -> None:
    error = refusal(text, edit)
    assert isinstance(error, ConfigError)
    assert words in str(error)


def test_a_refused_edit_does_not_stop_the_others() -> None:
    after, refused = edit_text(LINES, [SetTool("nope", "t", False), OFF, AddServer(ServerEntry("a", command="c"))])
    assert [type(each) for each in refused] == [UnknownServer, type(None), ServerExists]
    assert after == edited(LINES, OFF)


def test_an_entry_that_is_wrong_elsewhere_can_still_be_edited() -> None:
    text = '{"mcpServers": {"a": {"args": 3}}}'
    assert edited(text, SetEnabled("a", False)) == '{"mcpServers": {"a": {"args": 3, "disabled": true}}}'


def test_a_deep_value_beside_an_edit_is_refused_or_edited_but_no_crash() -> None:
    deep = "[" * 500 + "]" * 500
    text = f'{{"mcpServers": {{"a": {{"command": "c", "x": {deep}}}}}}}'
    after, _ = edit_text(text, [OFF])
    assert after in (text, text.replace(deep, deep + ', "tools": {"exclude": ["t"]}'))


def test_an_edit_that_would_write_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it comes about: each edit is read again, and then the whole text once more, before any of it is written."""
    text = '{"mcpServers": {"a": {"command": "c"}, "b": {"command": "d"}}}'
    reader = Reader()
    draft = Draft(reader, reader.read(text))
    draft.edit(SetTool("a", "t", False))
    draft._texts["a"] = '{"command": "rm", "tools": {"exclude": ["t"]}}'
    with pytest.raises(ConfigError, match="would not read as it was meant; nothing was written"):
        draft.finish()

    def wrong(slice_: Slice, edit: object, entry: object) -> None:
        slice_.put(("command",), "rm")

    monkeypatch.setattr("playbill.actors.edge.config.edit.edit_slice", wrong)
    after, (refused,) = edit_text(text, [SetTool("a", "t", False)])
    assert after == text
    assert "would not read as it was meant" in str(refused)


@pytest.mark.parametrize(
    ("entry", "edits"),
    [
        ('{"command": "python", "tools": ["a", "t"]}', [SetTool("a", "a", False), SetTool("a", "a", True)]),
        ('{"url": "https://h/", "includeTools": ["a"]}', [ON, OFF]),
        ('{"command": "c", "tools": ["a"]}', [ON, OFF]),
        (
            '{"command": "c", "disabled": false}',
            [SetEnabled("a", False), OFF, SetEnabled("a", True), ON],
        ),
    ],
)
def test_what_an_edit_adds_its_opposite_takes_away_again(entry: str, edits: list[Edit]) -> None:
    text = f'{{"mcpServers": {{"a": {entry}}}}}'
    assert edited(text, *edits) == text
    step = text
    for edit in edits:
        step = edited(step, edit)
    assert step == text
