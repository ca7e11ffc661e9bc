"""Every configuration of `configs/`, and what `expectations.tsv` expects of it, as a table.

What the words of that file expect of a running host (restarts, noise on stdout, trees of processes) is held elsewhere, by
`tests/host`, `tests/edge_connection` and `tests/reports`; here is what concerns reading, expanding, showing and editing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import field, frozen
from playbill.actors import open_host
from playbill.actors.cli.app import run as run_cli
from playbill.actors.edge.config.edit import edit_text
from playbill.actors.edge.config.expand import Expanded, ExpandError, expand
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.jsonc import decode
from playbill.actors.edge.config.read import read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import AddServer, SetTool
from playbill.actors.model.errors import ConfigError
from playbill.actors.model.mask import mask_args
from playbill.actors.model.naming import wire_name

HERE = Path(__file__).parent
CONFIGS = HERE / "configs"
EXPECTED = dict(line.split("\t")[::2] for line in (HERE / "expectations.tsv").read_text("utf-8").splitlines()[1:])


@frozen
class Read:
    """A file that is read.

    Args:
        servers: how many there are, wrong ones included.
        off: the names of those that are disabled.
        wrong: per server that cannot be used, the line and words of its error.
        warns: words of each warning, in order; there are no others.
        needs: per server, what its expansion lacks in an empty environment.
    """

    servers: int
    off: tuple[str, ...] = ()
    wrong: dict[str, tuple[int, str]] = field(factory=dict)
    warns: tuple[str, ...] = ()
    needs: dict[str, str] = field(factory=dict)


@frozen
class Refused:
    """A file that is refused: where, and in which words."""

    line: int
    column: int
    words: str


_CWD = "working_directory: unknown key (did you mean 'cwd'?)"
_WORDS = "command: this is more than one word (put the rest into args)"
_NONE = "tools: an empty list is not read (write tools.include: [] to allow none)"
_LIST = "tools: a list that is not of names is not read"

TABLE: dict[str, Read | Refused] = {
    "003-win-cmd-c.json": Read(1, needs={"e2b": "env.E2B_API_KEY: ${E2B_API_KEY} is not set"}),
    "004-link-instead-of-url.json": Read(
        2,
        wrong={
            "supabase": (3, "mcpServers.supabase: there is no command and no url here (did you mean 'url' by 'link'?)")
        },
        warns=("mcpServers.supabase.link: unknown key (did you mean 'url'?)", "mcpServers.github.link: unknown key"),
    ),
    "005-description-key.json": Read(5),
    "007-names-with-spaces-urlonly.json": Read(3),
    "008-no-wrapper-key.json": Read(1, needs={"continuum": "args[3]: ${CLAUDE_PROJECT_DIR} is not set"}),
    "009-vscode-inputs-trailingcomma.json": Read(
        1, needs={"home-assistant-mcp": "url: ${input:home-assistant-domain} was not supplied"}
    ),
    "011-vscode-relative-args.json": Read(1),
    "012-vscode-deep-abs-path.json": Read(1),
    "017-cursor-tabs-mixed.json": Read(2),
    "018-cursor-env-self.json": Read(
        1, needs={"autoinfo": "env.AUTOINFO_LLM_API_KEY: ${AUTOINFO_LLM_API_KEY} is not set"}
    ),
    "022-cursor-tools-array-not-servers.json": Refused(
        2, 3, "there is no mcpServers key here (found a list under tools)"
    ),
    "023-cursor-schema-key-dotpaths.json": Read(1),
    "025-stdio-and-disabled-remote.json": Read(4, off=("remote-sse-server", "remote-http-server")),
    "026-servers-key-desc.json": Read(1),
    "027-args-with-embedded-json.json": Read(2),
    "028-relative-pythonpath.json": Read(5),
    "034-docker-socat-tcp.json": Read(1),
    "038-gemini-sibling-privacy.json": Read(2),
    "039-cline-url-name.json": Read(1),
    "040-cline-alwaysallow-3.json": Read(3),
    "041-librechat-clickhouse.yaml": Refused(
        1, 1, 'looks like YAML; copy its mcpServers into a JSON file, under "mcpServers"'
    ),
    "042-opencode-no-mcp.jsonc": Read(0, warns=("there is no mcpServers key in this file (found $schema, reference)",)),
    "045-codex-bash-lc.toml": Refused(1, 1, "looks like TOML; copy its mcp_servers into a JSON file"),
    "048-server_type-inline-tools-abridged.json": Read(
        3,
        wrong={"file-server": (11, _CWD), "auto-favicon": (35, _CWD), "magicuidesign": (44, _CWD)},
        warns=(_LIST, _WORDS, _NONE, _WORDS, _WORDS),
    ),
    "049-cline-url-names-token-in-args.json": Read(2),
    "053-at-scoped-name-quoted-arg.json": Read(2),
    "054-roo-env-colon-in-args.json": Read(2, needs={"supabase": "args[3]: ${SUPABASE_ACCESS_TOKEN} is not set"}),
    "056-minified-one-line.json": Read(2),
    "058-cline-mcpperformance.json": Read(2, off=("github.com/chroma-core/chroma",)),
    "059-cline-workspacefolder.json": Read(1),
    "062-antigravity-18-servers-shell-metachar.json": Read(18),
    "066-desktop-env-var-token.json": Read(1, needs={"auto-coder": "env.GITHUB_TOKEN: ${GITHUB_TOKEN} is not set"}),
    "068-cursor-unicode-paths-token.json": Read(2),
    "070-vscode-input-id-mismatch.json": Read(
        1,
        needs={
            "github": "env.GITHUB_PERSONAL_ACCESS_TOKEN: ${input:github_pat} is not declared by the file (declared: token)"
        },
    ),
    "071-vscode-npx-no-y.json": Read(1),
    "074-yaml-comma-after-string.yaml": Refused(1, 1, "not JSON: this looks like YAML"),
    "079-gemini-httpurl-excludetools.json": Read(1),
    "080-include-and-exclude.json": Read(1),
    "082-codex-enabled-tools-bearer-env.toml": Refused(1, 1, "looks like TOML; copy its mcp_servers into a JSON file"),
    "083-mcp-remote-header-var.json": Read(1),
    "084-trailing-comma-after-server.json": Read(1),
    "086-bare-map-python-client.json": Read(1),
    "088-bom-utf16le.json": Refused(1, 1, "the file is UTF-16; save it as UTF-8"),
    "090-truncated-mid-object.json": Refused(5, 16, "unterminated string starting at line 5 column 16"),
    "092-empty-mcpservers.json": Read(0),
    "094-goose-null-values.yaml": Refused(1, 1, "not JSON: this looks like YAML; copy its extensions"),
    "095-goose-password-in-args.yaml": Refused(1, 1, "not JSON: this looks like YAML; copy its extensions"),
    "096-npm-run-banner.json": Read(2),
    "098-librechat-type-omitted-abridged.yaml": Refused(1, 1, "not JSON: this looks like YAML; copy its mcpServers"),
    "100-cline-6-servers-mixed-keys.json": Read(6, off=("task-master",)),
    "102-nested-transport-object.json": Read(
        1, wrong={"df-core": (3, "mcpServers.df-core: there is no command and no url here (found transport.url)")}
    ),
    "103-jsonc-import-fixture.json": Read(
        2,
        needs={
            "a": "env.TOKEN: ${input:token} is not declared by the file",
            "b": "headers.Authorization: ${TOKEN} is not set",
        },
    ),
    "105-duplicate-keys.json": Refused(
        6, 3, "'mcpServers' (lines 2, 6); 'github' (lines 3, 4); 'command' (lines 7, 7)"
    ),
    "107-wrong-typed-roots.json": Refused(
        2, 17, "found a list; mcpServers[1].args: expected a list of strings, found a string"
    ),
}

READ = [name for name, each in TABLE.items() if isinstance(each, Read)]
REFUSED = [name for name, each in TABLE.items() if isinstance(each, Refused)]


def text_of(name: str) -> str:
    return decode((CONFIGS / name).read_bytes(), name)


def read(name: str) -> Config:
    return read_config(text_of(name), name)


def server(file: str, name: str) -> ServerEntry:
    entry = read(next(each for each in TABLE if each.startswith(file))).get(name)
    assert entry is not None
    return entry


def run(file: str, name: str, **environ: str) -> Expanded:
    return expand(server(file, name), environ=environ)


def test_every_file_is_in_the_table_and_every_expectation_has_its_file() -> None:
    there = sorted(each.name for each in CONFIGS.iterdir())
    assert sorted(TABLE) == there
    assert sorted(EXPECTED) == there


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_expected(name: str) -> None:
    meant = TABLE[name]
    assert isinstance(meant, Read)
    config = read(name)
    assert len(config.servers) == meant.servers
    assert tuple(e.name for e in config.servers if e.disabled) == meant.off
    wrong = {e.name: e.error for e in config.servers if e.error is not None}
    assert wrong.keys() == meant.wrong.keys(), wrong
    for each, (line, words) in meant.wrong.items():
        assert wrong[each].startswith(f"{name}:{line}:")
        assert words in wrong[each]
    assert len(config.warnings) == len(meant.warns), config.warnings
    for warning, words in zip(config.warnings, meant.warns, strict=True):
        assert words in warning


@pytest.mark.parametrize("name", READ)
def test_what_an_entry_lacks_to_be_run_is_named_and_never_passed_on_as_it_stands(name: str) -> None:
    meant = TABLE[name]
    assert isinstance(meant, Read)
    lacks: dict[str, str] = {}
    for entry in read(name).servers:
        if entry.error is not None:
            continue
        try:
            out = expand(entry, environ={})
        except ExpandError as error:
            lacks[entry.name] = str(error)
        else:
            values = (out.command, *out.args, *out.env.values(), out.url, *out.headers.values(), out.cwd)
            assert not any("${" in each for each in values if each is not None)
    assert lacks.keys() == meant.needs.keys(), lacks
    for each, words in meant.needs.items():
        assert words in lacks[each]


NAMED = {
    name: re.findall(r"naming (?!the )(?:(input) )?([\w.-]*[\w-])", expected) for name, expected in EXPECTED.items()
}
"""What an expectation wants an error to name, by its own words; ``input`` before the id of one."""


@pytest.mark.parametrize("name", [name for name, wanted in NAMED.items() if wanted])
def test_an_error_names_what_the_expectation_says_it_names(name: str) -> None:
    meant = TABLE[name]
    said = [meant.words] if isinstance(meant, Refused) else [w for _, w in meant.wrong.values()]
    said += () if isinstance(meant, Refused) else meant.needs.values()
    for kind, what in NAMED[name]:
        assert f"${{input:{what}}}" in " ".join(said) if kind else what in " ".join(said), (what, said)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused_says_where_and_why_in_one_line(name: str) -> None:
    meant = TABLE[name]
    assert isinstance(meant, Refused)
    with pytest.raises(ConfigError) as caught:
        read(name)
    error = str(caught.value)
    assert error.startswith(f"{name}:{meant.line}:{meant.column}: ")
    assert meant.words in error
    assert "\n" not in error


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused_is_not_written(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    before = (CONFIGS / name).read_bytes()
    file.write_bytes(before)
    store = FileStore(file, fsync=False)
    with pytest.raises(ConfigError):
        store.edit([SetTool("fetch", "t", False)])
    with pytest.raises(ConfigError):
        store.edit([AddServer(ServerEntry("new", command="c"))])
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", [name for name in READ if TABLE[name].servers])  # type: ignore[union-attr]
def test_hiding_a_tool_of_each_server_and_showing_it_again_gives_back_every_byte(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    before = (CONFIGS / name).read_bytes()
    file.write_bytes(before)
    store = FileStore(file, fsync=False)
    names = [e.name for e in store.load().servers if e.error is None and e.allows("a tool")]
    hidden = store.edit([SetTool(each, "a tool", False) for each in names])
    assert hidden.refused == (None,) * len(names)
    assert [e.name for e in store.load().servers if not e.allows("a tool")] == [
        e.name for e in read(name).servers if e.name in names or not e.allows("a tool")
    ]
    shown = store.edit([SetTool(each, "a tool", True) for each in names])
    assert shown.refused == (None,) * len(names)
    assert file.read_bytes() == before


def test_wire_names_are_legal_and_unique_over_all_servers_of_all_files() -> None:
    entries = [entry for name in READ for entry in read(name).servers]
    names = {entry.name for entry in entries} | {"github_com_upstash_context7-mcp", "GSD-2_Code"}
    wires = [wire_name(each, bare) for each in names for bare in ("search", "playwright_navigate", "x" * 80)]
    assert len(set(wires)) == len(wires)
    assert all(len(each) <= 63 and each.replace("_", "a").replace("-", "a").isalnum() for each in wires)
    assert all(each.isascii() and each.startswith("mcp__") for each in wires)


@pytest.mark.parametrize(
    ("file", "name", "shown"),
    [
        ("049", "github.com/supabase-community/supabase-mcp", "TOKEN_PLACEHOLDER"),
        ("053", "@21st-dev/magic", "TOKEN_PLACEHOLDER"),
        ("068", "modao", "TOKEN_PLACEHOLDER"),
    ],
)
def test_secrets_among_the_arguments_are_run_and_not_shown(file: str, name: str, shown: str) -> None:
    entry = server(file, name)
    assert shown in " ".join(run(file, name).args)
    assert shown not in " ".join(mask_args(entry.args))


def test_arguments_reach_the_server_as_they_are_written() -> None:
    assert run("027", "figma-remote-mcp-server").args[4] == (
        '{"client_name":"Windsurf","client_uri":"https://windsurf.ai"}'
    )
    assert run("053", "@21st-dev/magic").args[2] == 'API_KEY="TOKEN_PLACEHOLDER"'
    assert run("062", "bigtable").args[1] == "@toolbox-sdk/server@>=1.1.0"
    assert run("068", "excalidraw-local").args[0].startswith("/home/user/Desktop/cursor文件夹/")


@pytest.mark.parametrize(
    ("file", "name", "environ", "means"),
    [
        ("003", "e2b", {"E2B_API_KEY": "key-1"}, {"env": {"E2B_API_KEY": "key-1"}}),
        ("018", "autoinfo", {"AUTOINFO_LLM_API_KEY": "${X}"}, {"env": {"AUTOINFO_LLM_API_KEY": "${X}"}}),
        ("054", "supabase", {"SUPABASE_ACCESS_TOKEN": "tok"}, {"args": (..., "--access-token", "tok")}),
        (
            "066",
            "auto-coder",
            {"GITHUB_TOKEN": "gh-1"},
            {"env": {"GITHUB_TOKEN": "gh-1", "PROJECT_ROOT": "/home/user/project"}},
        ),
        ("083", "pupitre", {}, {"args": (..., "--header", "Authorization:Bearer TOKEN_PLACEHOLDER")}),
        ("103", "b", {"TOKEN": "tok"}, {"headers": {"Authorization": "Bearer tok"}}),
        ("017", "eslint", {"PATH": "/bin", "AWS_KEY": "secret"}, {"env": {"PATH": "/bin"}}),
    ],
)
def test_variables_are_expanded(file: str, name: str, environ: dict[str, str], means: dict[str, Any]) -> None:
    out = run(file, name, **environ)
    for key, value in means.items():
        got = getattr(out, key)
        if isinstance(value, tuple):
            got, value = got[1 - len(value) :], value[1:]
        assert got == value


def test_what_came_from_the_environment_is_scrubbed_and_still_shown_as_it_is_written() -> None:
    entry = server("066", "auto-coder")
    assert entry.env["GITHUB_TOKEN"] == "${GITHUB_TOKEN}"
    assert "gh-secret" in run("066", "auto-coder", GITHUB_TOKEN="gh-secret").secrets


@pytest.mark.parametrize("value", ["gh-secret", None])
def test_a_person_sees_what_comes_from_the_environment_and_not_what_it_is(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "mcp.json"
    config.write_bytes((CONFIGS / "066-desktop-env-var-token.json").read_bytes())
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("GITHUB_TOKEN", value)
    run_cli(["check", "--config", str(config)])
    said = "note: GITHUB_TOKEN is taken from the environment" if value else "warning: ${GITHUB_TOKEN} is not set"
    assert f"mcpServers.auto-coder.env.GITHUB_TOKEN: {said}\n" in (checked := capsys.readouterr().out)
    run_cli(["list", "--config", str(config)])
    heads, row = (listed := capsys.readouterr().out).splitlines()
    said = "GITHUB_TOKEN  " if value else "GITHUB_TOKEN (not set)  "
    assert row[heads.index("ENVIRONMENT") :].startswith(said)
    assert "gh-secret" not in checked + listed


async def test_all_servers_of_a_file_are_started_side_by_side_and_none_waits_for_another() -> None:
    """Eighteen at once, of which none ever answers: see README.md for why there is no bound."""
    begun: set[str] = set()
    all_begun = trio.Event()

    @asynccontextmanager
    async def connect(entry: ServerEntry, **_: Any) -> AsyncIterator[Any]:
        begun.add(entry.name)
        if len(begun) == 18:
            all_begun.set()
        await trio.sleep_forever()
        yield  # never

    async with open_host(read("062-antigravity-18-servers-shell-metachar.json"), connect=connect):
        with trio.fail_after(30):
            await all_begun.wait()


def test_inputs_that_are_supplied_go_where_they_are_referred_to() -> None:
    out = expand(
        server("009", "home-assistant-mcp"),
        environ={"PLAYBILL_INPUT_HOME_ASSISTANT_DOMAIN": "ha.example"},
        inputs={"home-assistant-token": "tok-en"},
    )
    assert out.url == "https://ha.example/mcp_server/sse"
    assert out.headers == {"Authorization": "Bearer tok-en"}
    assert "tok-en" in out.secrets


@pytest.mark.parametrize("file", ["011", "023", "028"])
def test_relative_paths_are_relative_to_the_folder_of_the_file(file: str, tmp_path: Path) -> None:
    name = next(each for each in TABLE if each.startswith(file))
    (tmp_path / name).write_bytes((CONFIGS / name).read_bytes())
    for entry in FileStore(tmp_path / name).load().servers:
        assert expand(entry, environ={}).cwd == str(tmp_path)


def test_the_workspace_folder_is_that_of_the_file() -> None:
    entry = read_config(text_of("059-cline-workspacefolder.json"), "/p/mcp.json").servers[0]
    assert expand(entry, environ={}).args[-1] == "/p"


@pytest.mark.parametrize(
    ("file", "name", "shown", "hidden"),
    [
        ("079", "priority", ("other",), ("run_program",)),
        ("080", "demo", ("search",), ("delete", "other")),
        ("054", "supabase", ("list_tables", "listTables", "other"), ()),
        ("040", "playwright", ("playwright_navigate", "other"), ()),
    ],
)
def test_tool_lists_hide_what_they_say(file: str, name: str, shown: tuple[str, ...], hidden: tuple[str, ...]) -> None:
    entry = server(file, name)
    assert all(entry.allows(each) for each in shown)
    assert not any(entry.allows(each) for each in hidden)


@pytest.mark.parametrize(
    ("file", "name", "kind", "seconds"),
    [
        ("007", "GSD-2 Code", None, None),
        ("079", "priority", None, 120),
        ("086", "server_name4", "http", None),
        ("062", "datacloud_spanner_remote", "http", None),
    ],
)
def test_remote_servers_are_recognized(file: str, name: str, kind: str | None, seconds: float | None) -> None:
    entry = server(file, name)
    assert entry.command is None
    assert entry.url is not None
    assert (entry.type, entry.timeout) == (kind, seconds)


def test_adding_a_server_keeps_all_that_others_wrote() -> None:
    for name in READ:
        text = text_of(name)
        added, (refused,) = edit_text(text, [AddServer(ServerEntry("a new one", command="c"))], name)
        assert refused is None
        assert read_config(added).get("a new one") is not None
        at = next(i for i, (a, b) in enumerate(zip(text + "\0", added, strict=False)) if a != b)
        assert added.endswith(text[at:].lstrip(", \t\r\n"))
