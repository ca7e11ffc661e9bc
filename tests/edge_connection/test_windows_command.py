"""What a command runs on Windows, and that an argument arrives as it was written, whatever is in it.

The readers of a command line are played here by the documented rules: ``cmd.exe`` (``cmd /?``, "percent expansion") and the C
runtime ("Parsing C++ command-line arguments"), both written independently of the code that writes the line.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.edge.wire.spawn import SpawnFailed
from playbill.actors.edge.wire.windows_command import LONGEST_CMD, Program, environment, resolve

FILES = {
    r"C:\nodejs\npx",
    r"C:\nodejs\npx.cmd",
    r"C:\nodejs\npx.ps1",
    r"C:\nodejs\node.exe",
    r"C:\tools\uvx.exe",
    r"C:\tools\server.py",
    r"C:\tools\python3.11.exe",
    r"C:\Windows\System32\cmd.exe",
    r"C:\project\npx.cmd",
    r"C:\project\bin\serve.bat",
    r"C:\project\100% sure\run.cmd",
}
PATH = r'C:\nodejs;"C:\tools";;C:\Windows\System32'
CMD = r"C:\Windows\System32\cmd.exe"


def resolved(command: str, *args: str, env: dict[str, str] | None = None, cwd: str = r"C:\project") -> Program:
    variables = environment({"Path": PATH, "PATHEXT": ".COM;.EXE;.BAT;.CMD;.VBS;.JS;.PY"} if env is None else env)
    files = {each.lower(): each for each in FILES}
    return resolve(
        command, args, env=variables, cwd=cwd, is_file=lambda path: path.lower() in files, system_root=r"C:\Windows"
    )


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("node", r"C:\nodejs\node.exe"),
        ("NODE.EXE", r"C:\nodejs\node.exe"),
        ("uvx", r"C:\tools\uvx.exe"),
        ("python3.11", r"C:\tools\python3.11.exe"),
        ("cmd", r"C:\Windows\System32\cmd.exe"),
        (r"C:\nodejs\node", r"C:\nodejs\node.exe"),
        ("C:/nodejs/node.exe", r"C:\nodejs\node.exe"),
        (r"..\nodejs\node.exe", r"C:\nodejs\node.exe"),
    ],
)
def test_a_program_is_found_by_the_servers_own_path_and_folder(command: str, file: str) -> None:
    found = resolved(command, "-y", "a b")
    assert found.file.lower() == file.lower()
    assert found.line.lower() == f'{file} -y "a b"'.lower()


def test_a_batch_file_is_found_beside_the_script_of_its_name_and_run_by_cmd() -> None:
    line = r'cmd.exe /d /e:on /v:off /s /c ""C:\nodejs\npx.cmd" -y @scope/server@1.0 "C:\My Files\\""'
    assert resolved("npx", "-y", "@scope/server@1.0", "C:\\My Files\\") == Program(CMD, line)
    assert resolved("npx.cmd", "-y", "@scope/server@1.0", "C:\\My Files\\") == Program(CMD, line)


def test_a_batch_file_by_a_path_of_the_servers_folder() -> None:
    assert resolved("./bin/serve").line.endswith(r'/c ""C:\project\bin\serve.bat""')


def test_cmd_slash_c_is_an_ordinary_program() -> None:
    assert resolved("cmd", "/c", "npx", "-y", "pkg") == Program(CMD, rf"{CMD} /c npx -y pkg")


def test_the_current_folder_is_searched_only_when_path_names_it() -> None:
    for path, file in [(PATH, r"C:\nodejs\npx.cmd"), (rf".;{PATH}", r"C:\project\npx.cmd")]:
        assert f'"{file}"' in resolved("npx", env={"PATH": path}).line


def test_of_pathext_only_what_can_be_started_counts() -> None:
    for pathext in (".PY;.CMD", ".CMD", "", ".PY"):
        assert "npx.cmd" in resolved("npx", env={"PATH": PATH, "PathExt": pathext}).line
    with pytest.raises(SpawnFailed, match="'npx' is not found in PATH"):
        resolved("npx", env={"PATH": PATH, "PATHEXT": ".EXE"})


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("npy", "command: 'npy' is not found in PATH"),
        ("server.py", "command: 'server.py' is not found in PATH"),
        (r"C:\none\x.exe", r"command: 'C:\\none\\x.exe' does not exist"),
        (
            r"C:\tools\server.py",
            r"command: 'C:\\tools\\server.py' is no program that Windows can start (.exe, .com, .bat, .cmd): name the one "
            "that runs it",
        ),
        ("a\0b", "command, args, env or cwd: a NUL character (in 'a\\x00b')"),
    ],
)
def test_what_cannot_be_started_is_named(command: str, line: str) -> None:
    with pytest.raises(SpawnFailed) as caught:
        resolved(command)
    assert str(caught.value) == line


@pytest.mark.parametrize("text", ["two\nlines", "two\rlines"])
def test_a_line_break_cannot_be_given_to_a_batch_file(text: str) -> None:
    with pytest.raises(SpawnFailed, match=r"args: a line break cannot be given to a batch file \('npx'\)"):
        resolved("npx", text)
    assert text in resolved("node", text).line


def test_a_line_too_long_for_cmd_is_refused() -> None:
    with pytest.raises(SpawnFailed, match=f"longer than the {LONGEST_CMD} characters"):
        resolved("npx", "x" * LONGEST_CMD)


def test_one_name_in_two_spellings_is_one_variable() -> None:
    assert environment({"PATH": "a", "X": "1", "Path": "b"}) == {"Path": "b", "X": "1"}
    with pytest.raises(SpawnFailed, match="cannot be named ''"):
        environment({"": "x"})
    with pytest.raises(SpawnFailed, match="a NUL character in 'A'"):
        environment({"A": "\0"})


# The readers, played.

VARIABLES = {"PATH": "EXPANDED", "CD": r"C:\project", "a": "EXPANDED", "": "EXPANDED"}


def expanded(line: str) -> str:
    """Percent expansion at the prompt, which ``/c`` has: what is no variable stays as it is."""
    out, at = "", 0
    while at < len(line):
        if line[at] == "%" and (end := line.find("%", at + 1)) > at + 1:
            name, _, cut = line[at + 1 : end].partition(":")
            value = {key.lower(): text for key, text in VARIABLES.items()}.get(name.lower())
            if value is not None:
                assert cut in ("", "~,")
                out += "" if cut else value  # ``:~,`` is a substring of no length
                at = end + 1
                continue
        out += line[at]
        at += 1
    return out


def unquoted(line: str) -> str:
    """What ``cmd`` itself acts on: all that is not between quotes, to which it knows no escape."""
    return "".join(line.split('"')[::2])


def parsed(line: str) -> list[str]:
    """The arguments, by the C runtime's rules."""
    args: list[str] = []
    at, quoted, word, begun = 0, False, "", False
    while at < len(line):
        slashes = re.match(r"\\*", line[at:])
        assert slashes is not None
        count = slashes.end()
        at += count
        if at < len(line) and line[at] == '"':
            word += "\\" * (count // 2)
            begun = True
            if count % 2:
                word += '"'
            elif quoted and line[at + 1 : at + 2] == '"':
                word += '"'
                at += 1
            else:
                quoted = not quoted
            at += 1
            continue
        if count:
            word, begun = word + "\\" * count, True
            continue
        if line[at] in " \t" and not quoted:
            if begun:
                args.append(word)
            word, begun = "", False
        else:
            word, begun = word + line[at], True
        at += 1
    return [*args, word] if begun else args


HARD = st.text(st.sampled_from('aA0 \t"\\%^&|<>()!;=,:~é$@%"\\'), max_size=12) | st.sampled_from(
    ["", "%PATH%", '"%PATH%"', '"&calc&"', "%cd%", "a%", "%%", '{"a": "100%"}', "\\", 'a\\"', "--x=a&b", "%a%%a%"]
)


@given(args=st.lists(HARD, max_size=5))
def test_every_argument_of_a_batch_file_arrives_as_it_was_written(args: list[str]) -> None:
    line = resolved(r".\100% sure\run.cmd", *args).line
    head, inner = line[: line.index('"')], line[line.index('"') :]
    assert head == "cmd.exe /d /e:on /v:off /s /c "
    assert (inner[0], inner[-1]) == ('"', '"')
    run = expanded(inner[1:-1])
    assert not re.search(r"[&|<>^()!;=,\r\n]", unquoted(run)), run
    assert parsed(run) == [r"C:\project\100% sure\run.cmd", *args]


@given(args=st.lists(HARD, max_size=5))
def test_every_argument_of_a_program_arrives_as_it_was_written(args: list[str]) -> None:
    assert parsed(resolved("node", *args).line)[1:] == args
