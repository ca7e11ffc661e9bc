"""From an entry as written to what is run: variables, env files, the child's environment, the secrets to scrub.

Done anew at each (re)connect. Read in ``command, args, env, cwd, envFile, url`` and ``headers``:

==========================  ====================================================================================
``${NAME}``, ``${env:NAME}``  a variable; an error when it is not set
``${NAME:-text}``           ``text`` when it is unset or empty; ``text`` is read in the same way
``${input:ID}``             a value the embedder supplies; an error when it does not
``${workspaceFolder}``      the folder of the config file (of its parent for one in ``.vscode``, ``.cursor`` …)
``${userHome}``, ``${/}``   the home folder, the path separator
==========================  ====================================================================================

Anything else, ``$NAME`` too, is passed on as it is. What a variable holds is never read again, so nothing expands for ever.

Where a variable is looked up. In ``env``: our environment, the env file, then the other names of the block (a circle is an
error).
Elsewhere: the entry's own ``env``, the env file, our environment: what the server itself would see.

A server inherits only `INHERITED` (and what the caller adds), then its env file, then its ``env``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from attrs import define, field

from ...model.config import ServerEntry
from ...model.errors import PlaybillError
from .env_file import read_env_file
from .jsonc_walk import show_path

__all__ = ["INHERITED", "ExpandError", "Expanded", "expand", "workspace_folder"]

_WINDOWS = (
    "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT"
)
_WINDOWS += " TEMP TMP USERNAME USERPROFILE WINDIR"

INHERITED: tuple[str, ...] = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
if os.name == "nt":
    INHERITED += tuple(_WINDOWS.split())
"""The names of our environment that every server gets."""

_PLAIN = frozenset((*INHERITED, "PWD", "HOSTNAME"))
_SECRET_NAME = re.compile(r"key|token|secret|passw|pwd|auth|credential|cookie|session|private|dsn", re.IGNORECASE)
_SHORTEST_SECRET = 4
_DEEPEST = 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z").match
_EDITOR_FOLDERS = (
    ".vscode",
    ".cursor",
    ".claude",
    ".roo",
    ".gemini",
    ".windsurf",
    ".kiro",
    ".zed",
    ".idea",
    ".amazonq",
)
_NOT_OURS = ("command", "config", "secret", "keychain", "vault")


class ExpandError(PlaybillError):
    """An entry that cannot be run, for a reason that lies in what it refers to; ``str`` is one line without any value.

    Args:
        name: what was referred to, such as ``GITHUB_TOKEN`` or ``input:token``.
        path: where, inside the entry, such as ``env.TOKEN`` or ``args[2]``.
        reason: why it cannot be had, such as ``is not set``.
    """

    def __init__(self, name: str, path: str, reason: str = "is not set") -> None:
        self.name = name
        self.path = path
        self.reason = reason
        what = name if os.sep in name else f"${{{name}}}"
        super().__init__(f"{path}: {what} {reason}")


@define(kw_only=True)
class Expanded:
    """What to run.

    Args:
        command, args, url, headers: expanded.
        env: the whole environment of the process.
        cwd: an absolute folder: as written, else the config file's, else our own.
        secrets: values that must not be shown; for scrubbing.
    """

    command: str | None
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    url: str | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: set[str] = field(repr=False)


def workspace_folder(source: str | None) -> Path:
    """The folder that ``${workspaceFolder}`` stands for: that of the config file, or of our own process without one."""
    if source is None:
        return Path.cwd()
    folder = Path(source).absolute().parent
    return folder.parent if folder.name in _EDITOR_FOLDERS else folder


Lookup = Callable[[str, str], str | None]
"""Of a name, for a path: its value or None."""


class _Text:
    """Expands one text after the other, and remembers what secrets went into them."""

    def __init__(self, lookup: Lookup, fixed: Mapping[str, str], inputs: Mapping[str, str]) -> None:
        self._lookup = lookup
        self._fixed = fixed
        self._inputs = inputs
        self.secrets: set[str] = set()

    def expand(self, text: str, path: str, lookup: Lookup | None = None, depth: int = 0) -> str:
        if "${" not in text:
            return text
        if depth > _DEEPEST:
            raise ExpandError("…", path, f"is nested more than {_DEEPEST} deep")
        out: list[str] = []
        done = 0
        while (at := text.find("${", done)) >= 0:
            end = _end(text, at + 2)
            if end < 0:
                break
            value = self._value(text[at + 2 : end], path, lookup or self._lookup, depth)
            out += (text[done:at], text[at : end + 1] if value is None else value)
            done = end + 1
        return "".join((*out, text[done:]))

    def _value(self, inner: str, path: str, lookup: Lookup, depth: int) -> str | None:
        """What a reference stands for; None when it is none of ours and stays."""
        if inner in self._fixed:
            return self._fixed[inner]
        kind, colon, rest = inner.partition(":")
        if colon and kind == "input":
            if rest not in self._inputs:
                raise ExpandError(f"input:{rest}", path, "was not supplied")
            return self._secret(self._inputs[rest])
        if colon and kind in _NOT_OURS and not rest.startswith("-"):
            raise ExpandError(inner, path, "cannot be had here: only an editor knows it")
        name, default, text = inner.removeprefix("env:").partition(":-")
        if not _NAME(name):
            return None
        value = lookup(name, path)
        if default and not value:
            return self.expand(text, path, lookup, depth + 1)
        if value is None:
            raise ExpandError(name, path)
        return value if name in _PLAIN else self._secret(value)

    def _secret(self, value: str) -> str:
        if len(value) >= _SHORTEST_SECRET:
            self.secrets.add(value)
        return value


def _end(text: str, at: int) -> int:
    """The offset of the brace that closes a reference whose inside begins at ``at``; -1 when none does."""
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
            at += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return -1


def expand(
    entry: ServerEntry,
    *,
    environ: Mapping[str, str] | None = None,
    workspace: Path | None = None,
    inputs: Mapping[str, str] | None = None,
    inherit: Collection[str] = (),
) -> Expanded:
    """Expand an entry. Reads its env file; touches nothing else.

    Args:
        entry: as written.
        environ: our environment; None for that of the process.
        workspace: what ``${workspaceFolder}`` is; None for `workspace_folder`.
        inputs: the values of ``${input:ID}`` by id.
        inherit: names a server inherits besides `INHERITED`.

    Raises:
        ExpandError: a variable is not set, an input was not supplied, names run in a circle, or the env file cannot be read.
    """
    outer = os.environ if environ is None else environ
    home = workspace if workspace is not None else workspace_folder(entry.source)
    base = Path(entry.source).absolute().parent if entry.source is not None else home
    fixed = {
        "workspaceFolder": str(home),
        "workspaceFolderBasename": home.name,
        "userHome": outer.get("HOME") or outer.get("USERPROFILE") or str(Path("~").expanduser()),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    from_file: dict[str, str] = {}
    own: dict[str, str] = {}
    visiting: list[str] = []

    def in_env(name: str, path: str) -> str | None:
        value = outer.get(name, from_file.get(name))
        if value is None and name in entry.env and name != visiting[-1]:
            if name in visiting:
                raise ExpandError(name, path, "refers to itself")
            value = own_value(name)
        return value

    def elsewhere(name: str, path: str) -> str | None:
        return own.get(name, from_file.get(name, outer.get(name)))

    texts = _Text(elsewhere, fixed, inputs or {})

    def own_value(name: str) -> str:
        if name not in own:
            visiting.append(name)
            own[name] = texts.expand(entry.env[name], show_path(("env", name)), in_env)
            visiting.pop()
        return own[name]

    if entry.env_file is not None:
        file = base / texts.expand(entry.env_file, "envFile")
        try:
            from_file.update(read_env_file(file))
        except ValueError as wrong:
            raise ExpandError(str(file), "envFile", str(wrong)) from None
    for name in entry.env:
        own_value(name)
    args = tuple(texts.expand(arg, f"args[{i}]") for i, arg in enumerate(entry.args))
    headers = {key: texts.expand(value, show_path(("headers", key))) for key, value in entry.headers.items()}
    env = {name: outer[name] for name in (*INHERITED, *inherit) if name in outer and not outer[name].startswith("()")}
    env.update(from_file)
    env.update(own)
    return Expanded(
        command=None if entry.command is None else texts.expand(entry.command, "command"),
        args=args,
        env=env,
        cwd=str(base if entry.cwd is None else base / texts.expand(entry.cwd, "cwd")),
        url=None if entry.url is None else texts.expand(entry.url, "url"),
        headers=headers,
        secrets=texts.secrets | _written_secrets(own, from_file, headers),
    )


def _written_secrets(own: Mapping[str, str], from_file: Mapping[str, str], headers: Mapping[str, str]) -> set[str]:
    """Secrets by their look, wherever they were written: env values of telling names, and such headers with their last word."""
    found = {value for each in (own, from_file) for name, value in each.items() if _SECRET_NAME.search(name)}
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            found |= {value, value.rpartition(" ")[2]}
    return {value for value in found if len(value) >= _SHORTEST_SECRET}
