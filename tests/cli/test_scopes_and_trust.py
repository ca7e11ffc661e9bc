"""Without a path: the project's file and the user's, both in force; and what a project would run is approved first."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..forked import Forked
from .conftest import PROGRAM

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
Entry = Callable[..., dict[str, Any]]


def write(path: Path, **servers: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The place of the project's file."""
    return tmp_path / ".mcp.json"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The place of the user's file."""
    return tmp_path / "home" / ".config" / "playbill" / "mcp.json"


def test_list_shows_both_files_and_where_each_server_comes_from(playbill: Playbill, project: Path, user: Path) -> None:
    write(project, near={"command": "a"}, both={"url": "https://near.example/"})
    write(user, both={"command": "b"}, far={"command": "c"})
    done = playbill("list")
    assert done.returncode == 0
    _, near, both, far = done.stdout.splitlines()
    assert near.endswith(".mcp.json:3")
    assert "https://near.example/" in both
    assert far.endswith(f"{user.relative_to(project.parent)}:6")


@pytest.mark.parametrize(("scope", "names"), [("project", ["near"]), ("user", ["far"])])
def test_scope_chooses_one_of_them(inside: Playbill, project: Path, user: Path, scope: str, names: list[str]) -> None:
    write(project, near={"command": "a"})
    write(user, far={"command": "b"})
    value = json.loads(inside("list", "--json", "--scope", scope).stdout)
    assert [each["name"] for each in value["servers"]] == names


@pytest.mark.parametrize("verb", ["list", "tools", "check", "trust", "call", "add", "remove", "enable", "disable"])
def test_a_path_and_a_scope_are_not_both_given(inside: Playbill, project: Path, verb: str) -> None:
    write(project, near={"command": "a"})
    names = {"call": ["near/x"], "add": ["x", "--url", "https://x.example/"]}.get(verb, ["near"])
    words = [] if verb in ("list", "tools", "check") else names
    done = inside(verb, *words, "--config", project, "--scope", "user")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not both" in done.stderr


def test_a_broken_file_of_one_scope_is_named_and_the_other_is_listed(
    playbill: Playbill, project: Path, user: Path
) -> None:
    project.write_text("{")
    write(user, far={"command": "b"})
    done = playbill("list", "--json")
    assert done.returncode == 3
    value = json.loads(done.stdout)
    assert [each["name"] for each in value["servers"]] == ["far"]
    assert str(project) in value["error"]
    assert done.stderr.startswith(f"playbill: {project}:1:")
    done = playbill("disable", "nera")
    assert done.returncode == 3, "it may be in the file that cannot be read"
    done = playbill("why", "mcp__nera__x")
    assert (done.returncode, done.stdout) == (3, ""), "its server may be in there"
    assert done.stderr.startswith(f"playbill: {project}:1:")
    before = user.read_text()
    for words in (["disable", "far"], ["remove", "far"], ["disable", "far/t"], ["add", "far", "--replace", "--", "x"]):
        done = playbill(*words)
        assert (done.returncode, done.stdout) == (3, ""), "the project may have a server of that name"
        assert done.stderr.startswith(f"playbill: {project}:1:")
        assert f"that of {user} was not edited (--scope user edits that one)" in done.stderr
    assert (project.read_text(), user.read_text()) == ("{", before)
    assert playbill("disable", "far", "--scope", "user", "--quiet").returncode == 0
    assert project.read_text() == "{"


def test_list_says_of_an_untrusted_server_how_to_trust_it(playbill: Playbill, project: Path) -> None:
    write(project, **{"my server": {"command": "touch"}, "web": {"url": "https://x.example/"}})
    done = playbill("list")
    assert done.returncode == 0
    assert done.stdout.count("untrusted") == 1
    assert done.stderr == "playbill: server 'my server': untrusted — run `playbill trust 'my server'`\n"
    assert playbill("list", "--quiet").stderr == ""
    assert playbill("list", "--config", project).stderr == ""
    write(project, a={"command": "touch"}, b={"command": "touch"})
    both = "2 servers come with the project and are not started: `playbill trust --all` shows them ('a', 'b')"
    assert playbill("list").stderr == f"playbill: {both}\n"


def test_an_untrusted_server_is_never_started_and_a_trusted_one_is(
    playbill: Playbill, project: Path, entry: Entry
) -> None:
    write(project, notes=entry("notes"))
    done = playbill("call", "notes/titles")
    assert (done.returncode, done.stdout) == (4, "")
    assert "run `playbill trust notes`" in done.stderr
    done = playbill("tools")
    assert (done.returncode, "mcp__notes" in done.stdout) == (0, False)
    assert "run `playbill trust notes`" in done.stderr
    assert playbill("trust", "notes", "--yes").returncode == 0
    done = playbill("call", "notes/titles")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no notes yet\n", "")


def test_trust_shows_exactly_what_would_run_and_no_value_that_does_not_decide_it(
    playbill: Playbill, project: Path
) -> None:
    secret = "supersecretvalue123"
    raw = {
        "command": "npx",
        "args": ["-y", "", "two words", "right\u202eleft\x1b[2J", "--token=abc"],
        "cwd": "sub",
        "env": {"API_KEY": secret, "LEVEL": "1"},
        "envFile": "x.env",
    }
    write(project, a=raw)
    done = playbill("trust", "a", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "server a, from .mcp.json:3, would run:",
        "  command  npx",
        "  arg      -y",
        "  arg      ''",
        "  arg      two words",
        "  arg      'right\\u202eleft\\x1b[2J'",
        "  arg      --token=abc",
        "  cwd      sub",
        "  env      API_KEY=***",
        "  env      LEVEL=***",
        "  envFile  x.env",
        "trusted 'a'",
    ]
    state = project.parent / "home" / ".local" / "state" / "playbill" / "trust.json"
    assert secret not in state.read_text()


def test_trust_shows_the_values_that_decide_what_runs(playbill: Playbill, project: Path) -> None:
    raw = {
        "command": "sh",
        "args": ["-c", "${RUN:-${input:x}}; $SHELLED", "%WINDOWS%"],
        "cwd": "${env:FOLDER}",
        "env": {
            "RUN": "${DEEPER} a\tb",
            "DEEPER": "echo ${input:y}",
            "SHELLED": "s",
            "WINDOWS": "w",
            "FOLDER": "f",
            "FILE": "x.env",
            "OTHER": "hidden",
            "PATH": "./bin",
            "LD_PRELOAD": "./evil.so",
            "DYLD_INSERT_LIBRARIES": "d",
            "NODE_OPTIONS": "-r ./evil.js",
            "PYTHONSTARTUP": "p",
        },
        "envFile": "${FILE}",
    }
    inputs = [{"id": "x", "default": "echo good"}, {"id": "y"}, {"id": "unused", "default": "z"}]
    project.write_text(json.dumps({"inputs": inputs, "mcpServers": {"a": raw}}))
    shown = playbill("trust", "a").stdout.splitlines()
    assert [line for line in shown if line.startswith(("  env ", "  input"))] == [
        "  env      RUN='${DEEPER} a\\tb'",
        "  env      DEEPER=echo ${input:y}",
        "  env      SHELLED=s",
        "  env      WINDOWS=w",
        "  env      FOLDER=f",
        "  env      FILE=x.env",
        "  env      OTHER=***",
        "  env      PATH=./bin",
        "  env      LD_PRELOAD=./evil.so",
        "  env      DYLD_INSERT_LIBRARIES=d",
        "  env      NODE_OPTIONS=-r ./evil.js",
        "  env      PYTHONSTARTUP=p",
        "  input    x is by default echo good",
        "  input    y has no default",
    ]


def test_trust_shows_what_an_env_file_makes_run(inside: Playbill, project: Path) -> None:
    raw = {"command": "${PROG}", "args": ["${RUN}"], "env": {"RUN": "${DEEP}", "PATH": "mine"}, "envFile": "s.env"}
    write(project, a=raw)
    lines = ["PROG=/evil/prog", "DEEP='a\x1bb'", "PATH=bin:/usr/bin", "export LD_PRELOAD=./e.so", "TOKEN=s3cret-value"]
    lines += ["NPM_CONFIG_REGISTRY=https://me:s3cret-value@evil.example/", "NODE_AUTH_TOKEN=s3cret-value"]
    (project.parent / "s.env").write_text("\n".join(lines) + "\n")
    done = inside("trust", "a", "--yes")
    assert done.returncode == 0
    assert "s3cret" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith(("  env ", "  envFile"))] == [
        "  env      RUN=${DEEP}",
        "  env      PATH=mine",
        "  envFile  s.env",
        "  env      PROG=/evil/prog  (from s.env)",
        "  env      DEEP='a\\x1bb'  (from s.env)",
        "  env      PATH=bin:/usr/bin  (from s.env)",
        "  env      LD_PRELOAD=./e.so  (from s.env)",
        "  env      NPM_CONFIG_REGISTRY=https://***@evil.example/  (from s.env)",
    ]


CHOOSERS = """npm_config_registry NPM_CONFIG_SCRIPT_SHELL UV_INDEX_URL UV_DEFAULT_INDEX PIP_INDEX_URL PIP_EXTRA_INDEX_URL
PIP_CONFIG_FILE GIT_SSH_COMMAND GIT_CONFIG_GLOBAL HTTPS_PROXY all_proxy PERL5LIB PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS
_JAVA_OPTIONS BASH_ENV DOCKER_HOST SSL_CERT_FILE NODE_EXTRA_CA_CERTS GOPROXY CARGO_HOME HOME"""


@pytest.mark.parametrize("name", CHOOSERS.split())
def test_trust_shows_values_that_decide_which_code_is_had(inside: Playbill, project: Path, name: str) -> None:
    env = {name: "https://me:s3cret@evil.example/x y", "GOOGLE_KEY": "hidden", f"{name}_TOKEN": "hidden"}
    write(project, a={"command": "c", "env": env})
    shown = inside("trust", "a", "--yes").stdout
    assert f"  env      {name}=https://***@evil.example/x y\n" in shown
    assert "s3cret" not in shown
    assert "hidden" not in shown


def test_nothing_that_could_run_is_taken_for_a_credential(inside: Playbill, project: Path) -> None:
    write(project, a={"command": "c", "env": {"GIT_SSH_COMMAND": "x://$(evil)@h; y://evil;@h"}})
    assert "GIT_SSH_COMMAND=x://$(evil)@h; y://evil;@h\n" in inside("trust", "a", "--yes").stdout


def test_without_a_terminal_nothing_is_approved_unless_it_is_said_so(playbill: Playbill, project: Path) -> None:
    write(project, a={"command": "x"})
    done = playbill("trust", "a")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert "would run" in done.stdout
    assert json.loads(playbill("list", "--json").stdout)["servers"][0]["trusted"] is False


def on_a_terminal(words: list[str], folder: Path, environ: dict[str, str], answer: bytes = b"") -> tuple[int, bytes]:
    """Run the program on a terminal, type an answer, and return its exit code and all that was seen."""
    ours, theirs = pty.openpty()
    process = Forked([*PROGRAM, *words], cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answer)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    return process.wait(60), seen


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("já\n", 1)])
def test_on_a_terminal_a_person_is_asked(
    playbill: Playbill, project: Path, environment: dict[str, str], answer: str, code: int
) -> None:
    write(project, a={"command": "x"})
    environ = {**environment, "PYTHONIOENCODING": "ascii"}
    ended, seen = on_a_terminal(["trust", "a"], project.parent, environ, answer.encode())
    assert ended == code
    assert b"would run" in seen
    assert b"trust 'a'? [y/N]" in seen
    assert b"unexpected" not in seen
    assert json.loads(playbill("list", "--json").stdout)["servers"][0]["trusted"] is (code == 0)


def test_a_quiet_approval_says_nothing_and_a_quiet_question_still_shows_what_it_is_about(
    inside: Playbill, project: Path
) -> None:
    write(project, a={"command": "x"})
    assert "would run" in inside("trust", "a", "--quiet").stdout
    done = inside("trust", "a", "--quiet", "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_entry_asks_again_and_all_are_approved_at_once(playbill: Playbill, project: Path) -> None:
    write(project, a={"command": "x"}, b={"command": "y"}, web={"url": "https://x.example/"}, bad={"comand": "z"})
    done = playbill("trust", "--all", "--yes", "--json")
    assert done.returncode == 0
    value = json.loads(done.stdout)
    assert [(each["name"], each["command"], each["file"]) for each in value["approved"]] == [
        ("a", "x", str(project)),
        ("b", "y", str(project)),
    ]
    assert playbill("trust", "--all").stdout == "nothing needs approval\n"
    write(project, a={"command": "x", "disabled": True}, b={"command": "y", "args": ["--evil"]})
    assert [e["trusted"] for e in json.loads(playbill("list", "--json").stdout)["servers"]] == [True, False]


def test_trust_as_json_says_what_the_approval_covers_and_no_secret(playbill: Playbill, project: Path) -> None:
    secret = "supersecretvalue123"
    raw = {
        "command": "npx",
        "args": ["-y", "--token", secret, "${input:zone}"],
        "env": {"API_KEY": secret, "LEVEL": "1"},
        "envFile": "x.env",
        "headers": {"X-Key": secret},
    }
    project.write_text(json.dumps({"inputs": [{"id": "zone", "default": secret}], "mcpServers": {"a": raw}}))
    done = playbill("trust", "a", "--yes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert secret not in done.stdout
    (approved,) = json.loads(done.stdout)["approved"]
    state = project.parent / "home" / ".local" / "state" / "playbill" / "trust.json"
    assert approved == {
        "name": "a",
        "file": str(project),
        "line": 1,
        "command": "npx",
        "args": ["-y", "--token", "***", "${input:zone}"],
        "url": None,
        "cwd": str(project.parent),
        "env": ["API_KEY", "LEVEL"],
        "env_file": "x.env",
        "headers": ["X-Key"],
        "headers_helper": None,
        "inputs": ["zone"],
        "hash": json.loads(state.read_text())["approved"][str(project)]["a"],
    }


def test_an_env_file_whose_path_an_input_gives_is_never_approved(playbill: Playbill, project: Path) -> None:
    text = {"inputs": [{"id": "e", "default": "x"}], "mcpServers": {"a": {"command": "c", "envFile": "${input:e}.env"}}}
    project.write_text(json.dumps(text))
    for words in (["a", "--yes"], ["--all", "--yes", "--json"]):
        done = playbill("trust", *words)
        assert done.returncode == 1
        assert "trusted 'a'" not in done.stdout
        assert "server 'a' cannot be approved: the path of its envFile refers to an input" in done.stderr
    assert "warning: untrusted — the path of its envFile refers to an input" in playbill("check").stdout
    listed = playbill("list").stderr
    assert "untrusted — the path of its envFile refers to an input" in listed
    assert "playbill trust" not in listed
    assert json.loads(playbill("list", "--json").stdout)["servers"][0]["trusted"] is False


def test_what_needs_no_approval_is_said_so(inside: Playbill, project: Path, user: Path) -> None:
    write(project, web={"url": "https://x.example/"})
    write(user, mine={"command": "x"})
    done = inside("trust", "web", "mine")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "'web' needs no approval: it starts no program",
        "'mine' needs no approval: it is trusted as it is",
    ]


def test_a_file_that_is_named_is_approved_for_when_it_is_found(inside: Playbill, tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "elsewhere" / ".mcp.json", a={"command": "x"})
    assert inside("trust", "a", "--yes", "--config", elsewhere).returncode == 0
    elsewhere.rename(tmp_path / ".mcp.json")
    assert json.loads(inside("list", "--json").stdout)["servers"][0]["trusted"] is False
    (tmp_path / ".mcp.json").rename(elsewhere)
    assert "needs no approval" in inside("trust", "a", "--config", elsewhere).stdout


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ([], 2, "or --all (not trusted: alpha)"),
        (["alpha", "--all"], 2, "not both"),
        (["alhpa"], 2, "did you mean 'alpha'"),
        (["bad", "--yes"], 3, "mcpServers.bad"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_trust_that_means_nothing(inside: Playbill, project: Path, words: list[str], code: int, part: str) -> None:
    write(project, alpha={"command": "x"}, bad={"comand": "z"})
    done = inside("trust", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert part in done.stderr


@pytest.mark.parametrize(
    ("name", "text"), [(".mcp.json", '{"mcpServers": {"a": {"command": "evil", "envFile": "e"}}}'), ("e", "RUN=evil\n")]
)
def test_what_is_approved_is_what_was_shown(
    project: Path, tmp_path: Path, environment: dict[str, str], playbill: Playbill, name: str, text: str
) -> None:
    """The file, or the env file, changes between the question and the answer: what is there now is not approved."""
    write(project, a={"command": "x", "envFile": "e"})
    code = (
        "import sys\nfrom playbill.actors.cli import trusting\nfrom playbill.actors.cli.app import run\n"
        "from pathlib import Path\n"
        "def agreed(entry):\n"
        "    Path(sys.argv[1]).write_text(sys.argv[2])\n"
        "    return True\n"
        "trusting._agreed = agreed\n"
        "sys.exit(run(['trust', 'a', '--json']))"
    )
    words = [sys.executable, "-c", code, name, text]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    state = tmp_path / "home" / ".local" / "state" / "playbill" / "trust.json"
    kept = json.loads(state.read_text())["approved"][str(project)]["a"]
    assert json.loads(done.stdout)["approved"][0]["hash"] == kept
    assert json.loads(playbill("list", "--json").stdout)["servers"][0]["trusted"] is False


def test_check_says_of_several_that_only_want_approval_what_list_says_in_one_line(
    inside: Playbill, tmp_path: Path
) -> None:
    write(tmp_path / ".mcp.json", a={"command": "true"}, b={"command": "true"})
    said = "2 servers come with the project and are not started: `playbill trust --all` shows them ('a', 'b')"
    done = inside("check")
    (line,) = [line for line in done.stdout.splitlines() if "trust" in line]
    assert re.fullmatch(rf"\.mcp\.json:\d+:\d+: warning: {re.escape(said)}", line), line
    assert done.stdout.endswith("0 errors, 2 warnings\n")
    assert inside("list").stderr == f"playbill: {said}\n"
    findings = json.loads(inside("check", "--json").stdout)["findings"]
    assert [each["server"] for each in findings if "untrusted" in each["message"]] == ["a", "b"]
    write(tmp_path / ".mcp.json", a={"command": "true"})
    assert "mcpServers.a: warning: untrusted — run `playbill trust a`" in inside("check").stdout
