"""What `list` shows of what is in the file: names from the environment, very long texts, and characters that stdout lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.cli import listing

from .. import forked
from .conftest import PROGRAM
from .test_scopes_and_trust import on_a_terminal, write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]


def test_list_names_the_variables_that_come_from_the_environment(
    playbill: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    (tmp_path / "e.env").write_text("FILED=f\n")
    config = write_config(
        a={"command": "x", "args": ["${FILED}", "${OWN}", "${NO_SUCH}"], "env": {"T": "${TOKEN}", "OWN": "${env:TOKEN}"},
           "envFile": "e.env"},
        b={"url": "https://x.example/", "headers": {"A": "Bearer ${TOKEN}"}},
        c={"command": "x"},
    )  # fmt: skip
    done = playbill("list", "--config", config, TOKEN="s3cret-value", FILED="no", OWN="no")
    assert (done.returncode, done.stderr) == (0, "")
    heads, a, b, c = done.stdout.splitlines()
    assert heads.split() == ["SERVER", "KIND", "RUNS", "TOOLS", "ENVIRONMENT", "SOURCE"]
    at = heads.index("ENVIRONMENT")
    assert a[at:].startswith("TOKEN, NO_SUCH (not set)  ")
    assert b[at:].startswith("TOKEN  ")
    assert c[at:].startswith("  ")
    done = playbill("list", "--json", "--config", config, TOKEN="s3cret-value", FILED="no", OWN="no")
    assert "s3cret" not in done.stdout
    assert [each["environment"] for each in json.loads(done.stdout)["servers"]] == [
        [{"name": "TOKEN", "set": True}, {"name": "NO_SUCH", "set": False}],
        [{"name": "TOKEN", "set": True}],
        [],
    ]


def test_a_very_long_argument_is_cut_before_anything_looks_through_it(
    inside: Playbill, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 0
    mask_args, mask_text, mask_url = listing.mask_args, listing.mask_text, listing.mask_url

    def seen(texts: Any) -> Any:
        nonlocal longest
        texts = [texts] if isinstance(texts, str) else list(texts)
        longest = max(longest, *map(len, texts), 0)
        return texts

    monkeypatch.setattr(listing, "mask_args", lambda texts: mask_args(seen(texts)))
    monkeypatch.setattr(listing, "mask_text", lambda text: mask_text(seen(text)[0]))
    monkeypatch.setattr(listing, "mask_url", lambda url: mask_url(seen(url)[0]))
    size = 100_000
    config = write_config(
        word={"command": "c", "args": ["x", "A" * size, "y"]},
        words={"command": "c", "args": ["ab " * size]},
        many={"command": "c", "args": ["ab"] * size},
        program={"command": "p q " * size},
        far={"url": "https://x.example/" + "a" * size},
        fits={"command": "c", "args": ["A" * 4000]},
    )
    done = inside("list", "--config", config)
    assert done.returncode == 0
    assert longest < 5000
    assert len(done.stdout) < 250_000
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert f"c x '… ({size} characters)' y" in rows["word"]
    assert f"ab ab… ({3 * size} characters)'" in rows["words"]
    assert "ab ab … 93333 more" in rows["many"]
    assert "A" * 4000 in rows["fits"]
    value = json.loads(inside("list", "--json", "--config", config).stdout)
    assert longest < 5000
    assert value["servers"][0]["args"] == ["x", f"… ({size} characters)", "y"]
    assert value["servers"][4]["url"] == f"… ({size + 18} characters)"


@pytest.mark.parametrize(
    "secret",
    [
        "--token=",
        "https://user:",
        "https://x.example/?key=",
        "Authorization: Bearer ",
        "ghp_",
        "https://x.example/ab1",
    ],
)
@pytest.mark.parametrize("lead", [4080, 4090, 4100])
def test_a_text_is_not_cut_within_a_secret(inside: Playbill, write_config: WriteConfig, secret: str, lead: int) -> None:
    hidden = "Zq9" * 40
    long = "w" * (lead - len(secret) - 1) + " " + secret + hidden + "@host tail"
    config = write_config(a={"command": "c", "args": [long, "--password", long]}, b={"command": long})
    done = inside("list", "--config", config)
    assert done.returncode == 0
    assert "Zq9" not in done.stdout
    assert "Zq9" not in inside("list", "--json", "--config", config).stdout


ASCII = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "LANG": "C"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


@pytest.mark.parametrize("environ", ASCII, ids=lambda environ: " ".join(environ))
def test_no_verb_fails_for_a_character_that_the_output_lacks(
    playbill: Playbill, tmp_path: Path, environment: dict[str, str], environ: dict[str, str]
) -> None:
    project = write(
        tmp_path / ".mcp.json",
        **{
            "grün 文": {"command": "prögram", "args": ["→", "\U0001f600"], "env": {"Ä": "ü", "B": "${NO_SUCH}"}},
            "half \ud800": {"command": "c", "cwd": "häuser", "disabled": True},
            "schlecht": {"comändo": "ü"},
        },
    )
    commands = [
        (3, ["list"]), (3, ["list", "--json"]), (3, ["check"]), (3, ["check", "--json"]),
        (2, ["trust", "--all"]), (0, ["trust", "--all", "--yes", "--json"]), (0, ["trust", "--all"]),
    ]  # fmt: skip
    for code, words in commands:
        done = playbill(*words, **environ)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        assert "unexpected" not in said
        assert "UnicodeEncodeError" not in said
        if "--json" in words:
            json.loads(done.stdout)
    _, seen = on_a_terminal(["list"], tmp_path, {**environment, **environ})
    assert b"stdio" in seen
    assert b"Error" not in seen
    assert project.is_file()


SAYS = """
from playbill.actors.servers._stdio import Tool, serve

def hear(wort=""):
    return f"\u00dc {wort} \u6771\u4eac \U0001f600"

serve("gr\u00fcn", "1", "", [Tool("h\u00f6r", "", "Sagt \u6771\u4eac", {"wort": {"type": "string"}}, (), hear)])
"""


@pytest.mark.parametrize(
    ("environ", "word"),
    [(each, word) for each in ASCII for word in ("größe 東京".encode(), b"gr\xf6\xdfe")],
    ids=[f"{word}-{' '.join(each)}" for each in ASCII for word in ("utf-8", "latin-1")],
)
def test_arguments_and_answers_that_the_locale_lacks_go_through_or_are_told(
    tmp_path: Path, environment: dict[str, str], environ: dict[str, str], word: bytes
) -> None:
    (tmp_path / "says.py").write_text(SAYS, "utf-8")
    write(tmp_path / "mcp.json", grün={"command": sys.executable, "args": ["says.py"]})
    where = {**environment, **environ}
    arguments = b'{"wort": "' + word + b'"}'
    for words in (
        ["call", "grün/hör".encode(), arguments],
        ["call", b"gr\xfcn/x"],
        ["tools"],
        ["why", word],
        ["remove", word],
    ):
        done = forked.run(
            [*PROGRAM, *words, "--config", "mcp.json"],
            cwd=tmp_path, env=where, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
        )  # fmt: skip
        said = (done.stdout + done.stderr).decode("utf-8", "backslashreplace")
        assert "Traceback" not in said
        assert "unexpected" not in said, said
        assert "UnicodeEncodeError" not in said
        assert done.returncode in (0, 2), said
        assert said.strip()
        if words[0] == "call" and words[1] != b"gr\xfcn/x":
            spoken = said.encode("ascii", "backslashreplace").decode()
            right = word == "größe 東京".encode()
            assert done.returncode == (0 if right else 2)
            # As escapes, or as they are: whatever the locale, what was typed is what the tool was given.
            wanted = "\\xdc gr\\xf6\\xdfe \\u6771\\u4eac" if right else "the arguments are not UTF-8"
            assert wanted in spoken


def test_a_config_without_servers_says_how_to_add_one(inside: Playbill, write_config: WriteConfig) -> None:
    done = inside("list", "--config", write_config())
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("mcp.json: no servers; `playbill add NAME -- COMMAND` adds a server\n")
