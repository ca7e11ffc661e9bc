"""The JSONC scanner: it reads what JSON reads, and says in words, with line and column, why it does not read the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playbill.actors.edge.config.jsonc import decode, scan
from playbill.actors.edge.config.jsonc_errors import place
from playbill.actors.edge.config.jsonc_walk import Twice, items, locate, members, parse, show_path
from playbill.actors.model.errors import ConfigError

many = settings(
    max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.json")
    return caught.value


@many
@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_is_read_as_json_reads_it(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse(text) == json.loads(text)


@many
@given(st.text(alphabet="{}[]\",:/*\\ \n\r\t0a-tNI'\ufeffé", max_size=30))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    source = scan(text)
    assert len(source.text) == len(source.bare) == len(source.json)
    refused: ConfigError | None = None
    value = None
    try:
        value = parse(text, "f")
    except ConfigError as error:
        refused = error
    if refused is None:
        assert json.loads(source.json) == value
        return
    assert refused.line is not None
    assert refused.column is not None
    assert refused.column >= 1
    assert refused.line <= text.count("\n") + text.count("\r") + 1
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says
        json.loads(text, parse_constant=_raise)


def _raise(name: str) -> None:
    raise ValueError(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // x\n}', {"a": 1}),
        ('{"a": [1, 2, /* , */ ], }', {"a": [1, 2]}),
        ('/* // */ {"u": "http://x/*y*/" /**/ }', {"u": "http://x/*y*/"}),
        ('{"a": ",]", "b": ",}"}', {"a": ",]", "b": ",}"}),
        ('\ufeff{"a": "\\"//"}\r\n', {"a": '"//'}),
        ("[1,\r// x\r2]", [1, 2]),
        ('["a\\\\", // "\n]', ["a\\"]),
        ('{"a": 1} // end', {"a": 1}),
        ("/***/[]", []),
        ("[[1,],]", [[1]]),
        ('{"https://a": "//", "b": "/*"}', {"https://a": "//", "b": "/*"}),
    ],
)
def test_comments_and_trailing_commas_are_passed_over(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{\n "a": "x', 2, 7, "unterminated string starting at line 2 column 7"),
        ('{\n "a": "x\n}', 2, 7, "unterminated string starting at line 2 column 7"),
        ('{"a": 1} x', 1, 10, "extra data after the end of the value: 'x'"),
        ('{"a": 1}}', 1, 9, "extra data"),
        ('{"p": "C:\\Users"}', 1, 10, "bad escape \\U in a string (double each backslash: \\\\)"),
        ('{"p": "\\u12G4"}', 1, 8, "bad escape \\u"),
        ('{"a": tru}', 1, 7, "expected a value, found 'tru'"),
        ('{"a": True}', 1, 7, "write true"),
        ('{"a": None}', 1, 7, "write null"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ("{a: 1}", 1, 2, "keys are written in double quotes"),
        ('{"a" 1}', 1, 6, "expected ':' after the key, found '1'"),
        ('{"a": 1 "b": 2}', 1, 9, "expected ',' or '}', found '\"'"),
        ("[1 2]", 1, 4, "expected ',' or ']', found '2'"),
        ('{"a": [1, 2}', 1, 12, "expected ',' or ']', found '}'"),
        ('{\n "a": {\n  "b": 1\n}', 4, 2, "the file ends before the '{' of line 1 column 1 is closed"),
        ("[,]", 1, 2, "expected a value, found ','"),
        ("[1,,]", 1, 4, "expected a value"),
        ('{"a":,}', 1, 6, "expected a value"),
        ('{"a": NaN}', 1, 7, "NaN is not JSON"),
        ('{"N": -Infinity}', 1, 7, "-Infinity is not JSON"),
        ('{"a": "I\tN"}', 1, 9, "control character U+0009"),
        ('{"a": 1 /* x\n', 1, 9, "this comment does not end"),
        ('{"a": 1 # x\n}', 1, 9, "a comment begins with //"),
        ('\ufeff{"a": x}', 1, 7, "expected a value"),
        ('{\r "a": 1,\r "b": x}', 3, 7, "expected a value"),
        ('{\r\n "a": 1,\r\n "b": x}', 3, 7, "expected a value"),
        ("// only\n", 1, 1, "nothing in the file but comments"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "too many digits"),
        ('{"a": "\x01"}', 1, 8, "control character"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, line: int, column: int, words: str) -> None:
    error = refusal(text)
    assert words in error.message
    assert (error.line, error.column) == (line, column)
    assert "\n" not in str(error)
    assert str(error).startswith(f"f.json:{line}:{column}: ")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_an_error_like_any_other(text: str) -> None:
    assert "nested too deeply" in refusal(text).message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b" \n\t", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\0\0\0\0", "the file is empty"),
        ('{"a": 1}'.encode("utf-16"), "the file is UTF-16; save it as UTF-8"),
        ('{"a": 1}'.encode("utf-16-be"), "the file is UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "the file is UTF-16"),
        ('{"a": 1}'.encode("utf-32"), "the file is UTF-32"),
    ],
)
def test_bytes_that_are_not_utf_8_are_told_for_what_they_are(data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        decode(data, "f.json")


def test_the_first_byte_that_is_not_utf_8_is_placed() -> None:
    with pytest.raises(ConfigError, match="0x92") as caught:
        decode('{\n "ä": "'.encode() + b"\x92", "f.json")
    assert (caught.value.line, caught.value.column) == (2, 8)


def test_a_bom_survives_decoding() -> None:
    data = b"\xef\xbb\xbf{}"
    assert decode(data).encode() == data


def test_keys_that_are_there_twice_stay_in_sight() -> None:
    value = parse('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}')
    assert isinstance(value, Twice)
    assert value.twice == ("a",)
    assert value["a"] == 3
    assert isinstance(value["b"], Twice)


def test_every_member_is_found_at_its_place() -> None:
    text = '// x\n{ "a\\n": [1, {"k": "v"} /* , */, ], "b" : {} }'
    source = scan(text)
    inner, end = members(source, text.index("{"))
    assert end == len(text)
    assert [(m.key, text[m.start], text[m.at : m.end]) for m in inner] == [
        ("a\n", '"', '[1, {"k": "v"} /* , */, ]'),
        ("b", '"', "{}"),
    ]
    assert [text[m.at : m.end] for m in items(source, inner[0].at)[0]] == ["1", '{"k": "v"}']
    found = locate(source, ("a\n", 1, "k"))
    assert found is not None
    assert text[found.at : found.end] == '"v"'
    assert locate(source, ("a\n", 7)) is None
    assert locate(source, ("b", "k")) is None


@many
@given(values, st.sampled_from([None, 2]))
def test_every_path_is_located_at_its_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    source = scan(text)

    def check(part: Any, path: tuple[str | int, ...]) -> None:
        found = locate(source, path)
        assert found is not None
        assert json.loads(text[found.at : found.end]) == part
        each = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, inner in each:
            check(inner, (*path, key))

    check(value, ())


def test_a_line_break_counts_once_however_it_is_written() -> None:
    text = "a\r\nb\rc\nd"
    assert [place(text, text.index(each)) for each in "abcd"] == [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_a_path_is_written_as_people_write_it() -> None:
    assert show_path(("mcpServers", "git-hub", "args", 2)) == "mcpServers.git-hub.args[2]"
    assert show_path(("mcpServers", "a.b", "env", "X")) == "mcpServers['a.b'].env.X"


@pytest.mark.parametrize("gap", ["", " " * 300, "/*" + "x" * 300 + "*/", "\n" * 300], ids=len)
def test_a_comma_with_no_value_before_it_is_refused_however_far_back_one_looks(gap: str) -> None:
    for text in (f"[{gap},]", f'{{"a": 1,{gap},}}', f'{{"a":{gap},}}'):
        with pytest.raises(ConfigError):
            parse(text)
    assert parse(f"[1{gap},{gap}]") == [1]


def test_a_long_line_with_many_urls_is_read_in_one_go() -> None:
    value = {f"k{i}": ["http://x//y", "/*", "a,]"] for i in range(20_000)}
    assert parse(json.dumps(value)) == value
