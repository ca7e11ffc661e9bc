"""From an entry as written to what is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playbill.actors.edge.config.env_file import parse_env_file
from playbill.actors.edge.config.expand import Expanded, ExpandError, expand, workspace_folder
from playbill.actors.model.config import ServerEntry

ENVIRON = {"HOME": "/home/me", "PATH": "/bin", "TOKEN": "s3cret-1", "EMPTY": "", "OTHER": "other-value"}


def expanded(environ: dict[str, str] | None = None, inputs: dict[str, str] | None = None, **keys: Any) -> Expanded:
    keys.setdefault("command", "c")
    entry = ServerEntry("x", source=keys.pop("source", "/p/mcp.json"), **keys)
    return expand(entry, environ=ENVIRON if environ is None else environ, inputs=inputs)


def arg(text: str, **more: Any) -> str:
    return expanded(args=[text], **more).args[0]


def refusal(**keys: Any) -> ExpandError:
    with pytest.raises(ExpandError) as caught:
        expanded(**keys)
    return caught.value


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("${TOKEN}", "s3cret-1"),
        ("${env:TOKEN}", "s3cret-1"),
        ("a${TOKEN}b${TOKEN}", "as3cret-1bs3cret-1"),
        ("${NO:-x}", "x"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${NO:-}", ""),
        ("${env:NO:-x y}", "x y"),
        ("${TOKEN:-x}", "s3cret-1"),
        ("${NO:-${OTHER}}!", "other-value!"),
        ("${NO:-${NOT:-${HOME}}}", "/home/me"),
        ("${workspaceFolder}/a", "/p/a"),
        ("${userHome}${/}a", "/home/me/a"),
        ("$TOKEN", "$TOKEN"),
        ("${", "${"),
        ("${TOKEN", "${TOKEN"),
        ("${a b}", "${a b}"),
        ("${x.y}", "${x.y}"),
        ("$${TOKEN}", "$s3cret-1"),
        ('{"a": "}"}', '{"a": "}"}'),
        (">=1", ">=1"),
    ],
)
def test_a_reference_stands_for_its_value(written: str, means: str) -> None:
    assert arg(written) == means


def test_every_key_that_may_hold_a_reference_is_read() -> None:
    out = expanded(
        command="${HOME}/bin", args=["${TOKEN}"], env={"K": "${TOKEN}"}, cwd="${OTHER}", headers={"A": "Bearer ${TOKEN}"},
        url="https://${OTHER}",
    )  # fmt: skip
    assert (out.command, out.args, out.env["K"], out.cwd) == (
        "/home/me/bin",
        ("s3cret-1",),
        "s3cret-1",
        "/p/other-value",
    )
    assert (out.url, out.headers) == ("https://other-value", {"A": "Bearer s3cret-1"})


def test_the_own_env_block_counts_for_everything_but_itself() -> None:
    env = {"TOKEN": "mine-${TOKEN}", "NEW": "n"}
    assert arg("${TOKEN} ${NEW}", env=env) == "mine-s3cret-1 n"
    assert expanded(env={"A": "${B}", "B": "${C}", "C": "c"}).env["A"] == "c"


@pytest.mark.parametrize(
    ("keys", "name", "message"),
    [
        ({"args": ["a", "${NO}"]}, "NO", "args[1]: ${NO} is not set"),
        ({"env": {"A": "${NO}"}}, "NO", "env.A: ${NO} is not set"),
        ({"env": {"A": "${A}"}}, "A", "env.A: ${A} is not set"),
        ({"env": {"A": "${B}", "B": "${A}"}}, "A", "env.B: ${A} refers to itself"),
        ({"headers": {"X-Y": "${env:NO}"}}, "NO", "headers.X-Y: ${NO} is not set"),
        ({"cwd": "${NO}"}, "NO", "cwd: ${NO} is not set"),
        ({"command": "${NO}"}, "NO", "command: ${NO} is not set"),
        ({"command": None, "url": "https://${NO}"}, "NO", "url: ${NO} is not set"),
        ({"args": ["${input:token}"]}, "input:token", "args[0]: ${input:token} is not declared by the file and was not supplied"
            ": set PLAYBILL_INPUT_TOKEN, or pass inputs= to open_host"),
        ({"args": ["${command:pick}"]}, "command:pick", "args[0]: ${command:pick} cannot be had here: only an editor knows it"),
        ({"args": ["${NO:-" * 50 + "}" * 50]}, "…", "args[0]: ${…} is nested more than 20 deep"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_named_with_its_place(keys: dict[str, Any], name: str, message: str) -> None:
    error = refusal(**keys)
    assert (error.name, str(error)) == (name, message)


IN_HEADER, ON = ", which cannot be sent in a header", ", which cannot be passed on"
UNFIT = [
    ({"headers": {"X-K": "Bearer ${BAD}"}}, "a\nb", "headers.X-K: ${BAD} holds a line break" + IN_HEADER),
    ({"headers": {"X-K": "${env:BAD}"}}, "a\r", "headers.X-K: ${BAD} holds a line break" + IN_HEADER),
    ({"headers": {"X-K": "${BAD}"}}, "a\0", "headers.X-K: ${BAD} holds the character U+0000" + IN_HEADER),
    ({"headers": {"X-K": "${BAD}"}}, "\x1b[0m", "headers.X-K: ${BAD} holds the character U+001B" + IN_HEADER),
    ({"headers": {"X-K": "${BAD}"}}, "\u00e4", "headers.X-K: ${BAD} holds the character U+00E4" + IN_HEADER),
    ({"headers": {"X-K": "${A}"}, "env": {"A": "${BAD}"}}, "a\nb",
        "headers.X-K: ${A} holds a line break" + IN_HEADER),
    ({"headers": {"X-K": "${NO:-a\nb}"}}, "", "headers.X-K: holds a line break" + IN_HEADER),
    ({"url": "https://${BAD}/"}, "a\nb", "url: ${BAD} holds the character U+000A, which cannot be part of a URL"),
    ({"command": "${BAD}"}, "a\0b", "command: ${BAD} holds a NUL character" + ON),
    ({"args": ["a", "${BAD}"]}, "a\0b", "args[1]: ${BAD} holds a NUL character" + ON),
    ({"env": {"A": "${BAD}"}}, "a\0b", "env.A: ${BAD} holds a NUL character" + ON),
    ({"cwd": "${BAD}"}, "a\0b", "cwd: ${BAD} holds a NUL character" + ON),
    ({"args": ["${BAD}"]}, "a\ud800", "args[0]: ${BAD} holds half of a surrogate pair" + ON),
    ({"command": "a\0b"}, "", "command: holds a NUL character" + ON),
    ({"args": ["a\0b"]}, "", "args[0]: holds a NUL character" + ON),
    ({"env": {"A": "a\0b"}}, "", "env.A: holds a NUL character" + ON),
    ({"cwd": "a\0b"}, "", "cwd: holds a NUL character" + ON),
    ({"headers": {"X-K": "a\nb"}}, "", "headers.X-K: holds a line break" + IN_HEADER),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "value", "message"), UNFIT, ids=[message for *_, message in UNFIT])
def test_what_cannot_be_passed_on_is_named_without_its_value(keys: dict[str, Any], value: str, message: str) -> None:
    error = refusal(environ={**ENVIRON, "BAD": value}, **keys)
    assert str(error) == message


def test_line_breaks_go_to_a_process_as_they_are() -> None:
    out = expanded(args=["${BAD}"], env={"A": "${BAD}"}, environ={"BAD": "a\nb\x1b"})
    assert (out.args, out.env["A"]) == (("a\nb\x1b",), "a\nb\x1b")


def test_blanks_at_the_ends_are_no_part_of_a_header() -> None:
    out = expanded(headers={"A": "Bearer ${EMPTY}", "B": " ${TOKEN}\t", "C": "a b"})
    assert out.headers == {"A": "Bearer", "B": "s3cret-1", "C": "a b"}
    out = expanded(headers={"X-Y": "${BLANKS}"}, environ={"BLANKS": " hidden "})
    assert (out.headers, "hidden" in out.secrets) == ({"X-Y": "hidden"}, True)


def test_a_variable_in_a_header_may_be_no_line_of_an_env_file_either(tmp_path: Path) -> None:
    (tmp_path / "e").write_text('BAD="a\\nb"\n')
    error = refusal(source=str(tmp_path / "mcp.json"), env_file="e", headers={"K": "${BAD}"})
    assert str(error) == "headers.K: ${BAD} holds a line break, which cannot be sent in a header"


def test_what_came_from_our_environment_is_known_by_name_and_place(tmp_path: Path) -> None:
    (tmp_path / "e").write_text("FILED=x\nTOKEN=below\n")
    out = expanded(
        source=str(tmp_path / "mcp.json"), env_file="e", env={"A": "${TOKEN}", "OWN": "o", "OTHER": "mine"},
        args=["${A}", "${FILED}", "${OWN}", "${OTHER}", "${PATH}", "${EMPTY:-x}"],
    )  # fmt: skip
    assert out.taken == (("env.A", "TOKEN"), ("args[4]", "PATH"))


def test_what_a_variable_holds_is_not_read_again() -> None:
    assert arg("${A}", environ={"A": "${A}${input:x}${NO}"}) == "${A}${input:x}${NO}"
    assert arg("${A}", environ={"A": "${NO}"}, env={"A": "${A}"}) == "${NO}"


def test_variables_that_go_through_one_another_come_to_an_end() -> None:
    chain = {f"A{i}": f"${{A{i + 1}}}" for i in range(3000)} | {"A3000": "end"}
    assert str(refusal(env=chain)) == "env.A21: ${…} is nested more than 20 deep"
    assert expanded(env={name: chain[name] for name in list(chain)[-15:]}).env["A2990"] == "end"
    doubling = {f"A{i}": f"${{A{i + 1}}}${{A{i + 1}}}" for i in range(18)} | {"A18": "x" * 10}
    assert str(refusal(env=doubling)).endswith("stands for more than a million characters")
    assert len(refusal(args=["${TOKEN}" * 200_000]).args[0]) < 100
    both = {f"A{i}": "${N:-" * 4 + f"${{A{i + 1}}}" + "}" * 4 for i in range(9)} | {"A9": "end"}
    assert str(refusal(env=both)) == "env.A4: ${…} is nested more than 20 deep"
    assert expanded(env={name: both[name] for name in list(both)[-5:]}).env["A5"] == "end"


def test_inputs_are_supplied_by_the_embedder() -> None:
    out = expanded(args=["${input:tok}"], inputs={"tok": "given"})
    assert out.args == ("given",)
    assert "given" in out.secrets


def test_a_child_inherits_little_and_gets_its_own_on_top() -> None:
    entry = ServerEntry("x", command="c", env={"PATH": "/mine"})
    environ = {**ENVIRON, "LANG": "C", "BASH_FUNC": "x", "SHELL": "() { :; }"}
    assert expand(entry, environ=environ).env == {"HOME": "/home/me", "LANG": "C", "PATH": "/mine"}
    assert expand(entry, environ=environ, inherit=("OTHER",)).env["OTHER"] == "other-value"


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYBILL_TEST", "here")
    assert expand(ServerEntry("x", command="c", args=("${PLAYBILL_TEST}",))).args == ("here",)


def test_secrets_are_what_was_expanded_and_what_looks_like_one() -> None:
    out = expanded(
        args=["${TOKEN}", "${HOME}", "${EMPTY}", "${SHORT}", "${workspaceFolder}", "${NO:-default}"],
        env={"API_KEY": "literal-key", "MODE": "production", "SECRET": "x"},
        headers={"Authorization": "Bearer abcdef", "Accept": "text/html"},
        environ={**ENVIRON, "SHORT": "1"},
    )
    assert out.secrets == {"s3cret-1", "literal-key", "Bearer abcdef", "abcdef"}
    assert "s3cret" not in repr(out).replace("args=('s3cret-1'", "")


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert workspace_folder("/p/.vscode/mcp.json") == Path("/p")
    assert workspace_folder("/p/mcp.json") == Path("/p")
    assert workspace_folder(None) == tmp_path
    assert expanded(source="/p/.vscode/mcp.json").cwd == "/p/.vscode"
    assert expanded(cwd="sub").cwd == "/p/sub"
    assert expanded(cwd="/abs").cwd == "/abs"
    assert expanded(source=None).cwd == str(tmp_path)


def test_an_env_file_counts_below_the_env_block(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("export TOKEN=from-file\nA=a-file\nB=b-file\n", "utf-8")
    out = expanded(
        source=str(tmp_path / "mcp.json"), env_file="${workspaceFolder}/.env", env={"B": "own", "C": "${A}"},
        args=["${TOKEN}", "${A}", "${B}", "${C}"],
    )  # fmt: skip
    assert out.args == ("from-file", "a-file", "own", "a-file")
    assert {name: out.env[name] for name in ("TOKEN", "A", "B", "C")} == {
        "TOKEN": "from-file", "A": "a-file", "B": "own", "C": "a-file",
    }  # fmt: skip
    assert "from-file" in out.secrets


@pytest.mark.parametrize(
    ("data", "words"),
    [(None, "no such file"), (b"\xff", "not UTF-8"), (b"A=1\nx y\n", "line 2: expected KEY=VALUE"), (b"A=\0", "NUL")],
)
def test_a_bad_env_file_is_named(tmp_path: Path, data: bytes | None, words: str) -> None:
    file = tmp_path / "s.env"
    if data is not None:
        file.write_bytes(data)
    error = refusal(source=str(tmp_path / "mcp.json"), env_file="s.env")
    assert str(error).startswith(f"envFile: {file} ")
    assert words in str(error)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("A=b", {"A": "b"}),
        ("\ufeff# x\r\n\r\n export A = b c # d\r\n", {"A": "b c"}),
        ("A='b # c\\n'", {"A": "b # c\\n"}),
        ('A="b\\n\\"c\\" \\\\ \\q" # d', {"A": 'b\n"c" \\ \\q'}),
        ('A="x\ny"\nB=z', {"A": "x\ny", "B": "z"}),
        ("A=", {"A": ""}),
        ("A=#b", {"A": ""}),
        ("A=b#c", {"A": "b#c"}),
        ("A=${B}", {"A": "${B}"}),
        ("A=b\nA=c", {"A": "c"}),
        ("A=b=c", {"A": "b=c"}),
    ],
)
def test_env_file_lines(text: str, means: dict[str, str]) -> None:
    assert parse_env_file(text) == means


@pytest.mark.parametrize(
    ("text", "words"),
    [("A", "line 1"), ("A=b\n=c", "line 2"), ('A="b\nc', "line 1: the quote"), ("A='b' c", "line 1: there is text")],
)
def test_env_file_lines_that_are_wrong_are_numbered_and_not_shown(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_env_file(text)


@pytest.mark.parametrize("name", ["cwd", "file", "fileDirname", "execPath", "defaultBuildTask", "selectedText"])
def test_what_only_an_editor_knows_is_said_so_unless_there_is_a_variable_of_that_name(name: str) -> None:
    assert str(refusal(args=[f"${{{name}}}"])) == f"args[0]: ${{{name}}} cannot be had here: only an editor knows it"
    assert str(refusal(args=[f"${{env:{name}}}"])) == f"args[0]: ${{{name}}} is not set"
    assert arg(f"${{{name}}}", environ={name: "here"}) == "here"
    assert arg(f"${{{name}:-there}}") == "there"
