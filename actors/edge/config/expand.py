"""From an entry as written to what is run: variables, env files, the child's environment, the secrets to scrub.

Done anew at each (re)connect. Read in ``command, args, env, cwd, envFile, url`` and ``headers``:

==========================  ====================================================================================
``${NAME}``, ``${env:NAME}``  a variable; an error when it is not set
``${NAME:-text}``           ``text`` when it is unset or empty; ``text`` is read in the same way
``${input:ID}``             what the embedder supplies, else the variable of `input_variable`, else the default that the
                            file declares; an error when there is none
``${workspaceFolder}``      the folder of the config file (of its parent for one in ``.vscode``, ``.cursor`` …)
``${userHome}``, ``${/}``   the home folder, the path separator
``${command:…}``, ``${file}`` … what only an editor knows: an error, the second kind unless a variable of that name is set
==========================  ====================================================================================

Anything else, ``$NAME`` too, is passed on as it is. What a variable holds is never read again, so nothing expands for ever.

Where a variable is looked up. In ``env``: our environment, the env file, then the other names of the block (a circle is an
error).
Elsewhere: the entry's own ``env``, the env file, our environment: what the server itself would see.

A server inherits only `INHERITED` (and what the caller adds), then its env file, then its ``env``. So one variable more is
passed on by name, in the file: ``"env": {"NAME": "${NAME}"}``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from attrs import define, field

from ...model.config import InputSpec, ServerEntry
from ...model.errors import PlaybillError
from ...model.oauth import OAuth
from .env_file import read_env_file
from .jsonc_walk import show_path
from .keys import unsendable
from .oauth_expand import KeyUnread, expand_oauth

__all__ = [
    "INHERITED",
    "NOT_SET",
    "ONLY_AN_EDITOR",
    "ExpandError",
    "Expanded",
    "InputMissing",
    "expand",
    "header_secrets",
    "input_variable",
    "workspace_folder",
]

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
_NO_SECRETS = frozenset({"accept", "content-type", "user-agent"})
_SCHEMES = frozenset(
    {"basic", "bearer", "digest", "negotiate", "token"}
)  # of logins; they are words of every error too
_DEEPEST = 20
_LONGEST = 1 << 20
_NOT_IN_URL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]").search
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
_EDITOR_WORDS = """cwd file fileBasename fileBasenameNoExtension fileDirname fileDirnameBasename fileExtname fileWorkspaceFolder
lineNumber columnNumber relativeFile relativeFileDirname selectedText execPath defaultBuildTask extensionInstallFolder"""
_EDITORS = frozenset(_EDITOR_WORDS.split())
"""What an editor puts in, and no program beside it can know."""

NOT_SET = "is not set"
ONLY_AN_EDITOR = "cannot be had here: only an editor knows it"
_DEFAULT_MEANT = re.compile(r"[A-Za-z_]\w*(?::?[-+?=])").match


class ExpandError(PlaybillError):
    """An entry that cannot be run, for a reason that lies in what it refers to; ``str`` is one line without any value.

    Args:
        name: what was referred to, such as ``GITHUB_TOKEN`` or ``input:token``; empty when it is the text there itself.
        path: where, inside the entry, such as ``env.TOKEN`` or ``args[2]``.
        reason: why it cannot be had, such as ``is not set``.

    Attributes:
        futile: it will not be otherwise at the next attempt.
    """

    futile = True

    def __init__(self, name: str, path: str, reason: str = NOT_SET) -> None:
        self.name = name
        self.path = path
        self.reason = reason
        what = name if os.sep in name or not name else f"${{{name}}}"
        super().__init__(f"{path}: {f'{what} {reason}'.lstrip()}")


class InputMissing(ExpandError):
    """An ``${input:ID}`` that nobody supplied; the message says what the file declares about it, and how to supply it.

    Args:
        spec: what the file declares.
        path: where it is referred to, inside the entry.
        declared: all that the file declares.
    """

    def __init__(self, spec: InputSpec, path: str, declared: Collection[InputSpec]) -> None:
        self.spec = spec
        reason = "was not supplied"
        if spec.type is None:
            ids = ", ".join(each.id for each in declared)
            reason = f"is not declared by the file{f' (declared: {ids})' if ids else ''} and was not supplied"
        about = [" ".join(spec.description.split())] if spec.description else []
        if spec.options:
            about.append("one of " + ", ".join(spec.options))
        said = f" ({'; '.join(about)})" if about else ""
        how = f"set {input_variable(spec.id)}, or pass inputs= to open_host"
        super().__init__(f"input:{spec.id}", path, f"{reason}{said}: {how}")


def input_variable(id_: str) -> str:
    """The variable that supplies an input: ``PLAYBILL_INPUT_`` and its id in capitals, with ``_`` for the rest."""
    return "PLAYBILL_INPUT_" + re.sub(r"[^A-Z0-9_]", "_", id_.upper())


@define(kw_only=True)
class Expanded:
    """What to run.

    Args:
        command, args, url, headers: expanded.
        headers_helper: a command that gives more headers, expanded; see `remote.helper`.
        oauth: how it is logged in to, expanded.
        env: the whole environment of the process.
        cwd: an absolute folder: as written, else the config file's, else our own.
        secrets: values that must not be shown; for scrubbing.
        taken: what came from our environment: where it is referred to (``env.TOKEN``), and the name of the variable.
        kept: what looks like a variable with a default in another writing (``X-text``), and is passed on as it is: where, and
            what is between its braces.
    """

    command: str | None
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    url: str | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: set[str] = field(repr=False)
    taken: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    headers_helper: str | None = field(default=None, repr=False)
    oauth: OAuth | None = None


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

    def __init__(
        self, lookup: Lookup, fixed: Mapping[str, str], inputs: Callable[[str, str], tuple[str, bool]]
    ) -> None:
        self._lookup = lookup
        self._fixed = fixed
        self._inputs = inputs
        self.secrets: set[str] = set()
        self.kept: dict[tuple[str, str], None] = {}
        self._depth = 0  # of texts that wait for what they refer to: defaults, and other names of the env block

    def expand(self, text: str, path: str, lookup: Lookup | None = None) -> str:
        if "${" not in text:
            return text
        if self._depth > _DEEPEST:
            raise ExpandError("…", path, f"is nested more than {_DEEPEST} deep")
        self._depth += 1
        out: list[str] = []
        done = size = 0
        while (at := text.find("${", done)) >= 0:
            end = _end(text, at + 2)
            if end < 0:
                break
            value = self._value(text[at + 2 : end], path, lookup or self._lookup)
            out += (text[done:at], text[at : end + 1] if value is None else value)
            done = end + 1
            size += len(out[-1])
            if size > _LONGEST:
                raise ExpandError("…", path, "stands for more than a million characters")
        self._depth -= 1
        return "".join((*out, text[done:]))

    def _value(self, inner: str, path: str, lookup: Lookup) -> str | None:
        """What a reference stands for; None when it is none of ours and stays."""
        if inner in self._fixed:
            return self._fixed[inner]
        kind, colon, rest = inner.partition(":")
        if colon and kind == "input":
            value, shown = self._inputs(rest, path)
            _refuse_unfit(value, inner, path)
            return value if shown else self._secret(value)
        if colon and kind in _NOT_OURS and not rest.startswith("-"):
            raise ExpandError(inner, path, ONLY_AN_EDITOR)
        name, default, text = inner.removeprefix("env:").partition(":-")
        if not _NAME(name):
            if _DEFAULT_MEANT(inner):
                self.kept[path, inner] = None
            return None
        found = lookup(name, path)
        if default and not found:
            return self.expand(text, path, lookup)
        if found is None:
            raise ExpandError(name, path, ONLY_AN_EDITOR if inner in _EDITORS else NOT_SET)
        _refuse_unfit(found, name, path)
        return found if name in _PLAIN else self._secret(found)

    def _secret(self, value: str) -> str:
        # Without its blanks too: at the ends of a header they are not sent, and whoever repeats it does not either.
        self.secrets.update(each for each in (value, value.strip()) if len(each) >= _SHORTEST_SECRET)
        return value


def _refuse_unfit(value: str, name: str, path: str) -> None:
    """Refuse a value that cannot be passed on where it is to go: to a process, in a header, in a URL.

    Args:
        value: never shown.
        name: of what holds it; empty for the text itself.
        path: where it goes.

    Raises:
        ExpandError: it holds what may not be there.
    """
    unfit: str | None
    if path.startswith("headers"):
        unfit = unsendable(value)
        where = "sent in a header"
    elif path == "url":
        found = _NOT_IN_URL(value)
        unfit, where = (None if found is None else f"the character U+{ord(found[0]):04X}"), "part of a URL"
    else:
        unfit, where = _unpassable(value), "passed on"
    if unfit is not None:
        raise ExpandError(name, path, f"holds {unfit}, which cannot be {where}")


def _unpassable(value: str) -> str | None:
    """What of a text no process can be given, or None."""
    if "\0" in value:
        return "a NUL character"
    if value.isascii():
        return None
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return "half of a surrogate pair"
    return None


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
    inputs: Mapping[str, str | None] | None = None,
    asking: bool = False,
    inherit: Collection[str] | bool = (),
) -> Expanded:
    """Expand an entry. Reads its env file; touches nothing else.

    Args:
        entry: as written.
        environ: our environment; None for that of the process.
        workspace: what ``${workspaceFolder}`` is; None for `workspace_folder`.
        inputs: the values of ``${input:ID}`` by id; None for one that was asked for and not given.
        asking: an input that is not in ``inputs`` is missing, wherever else it might be had: it is to be asked for first.
        inherit: names a server inherits besides `INHERITED`; True for all there are.

    Raises:
        InputMissing: an input was not supplied.
        ExpandError: a variable is not set, or holds what cannot be passed on where it goes (a NUL character; in a header a
            line break, and what else is not sent); names run in a circle; or the env file cannot be read.
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
    taken: dict[tuple[str, str], None] = {}

    def outside(name: str, path: str) -> str | None:
        value = outer.get(name)
        if value:  # an empty one says nothing, and where there is a default that counts
            taken[path, name] = None
        return value

    def in_env(name: str, path: str) -> str | None:
        value = outside(name, path)
        if value is None:
            value = from_file.get(name)
        if value is None and name in entry.env and name != visiting[-1]:
            if name in visiting:
                raise ExpandError(name, path, "refers to itself")
            value = own_value(name)
        return value

    def elsewhere(name: str, path: str) -> str | None:
        value = own.get(name, from_file.get(name))
        return outside(name, path) if value is None else value

    given = inputs or {}

    def supplied(id_: str, path: str) -> tuple[str, bool]:
        """An input's value, and whether it may be shown."""
        spec = next((each for each in entry.inputs if each.id == id_), None) or InputSpec(id_)
        if asking and id_ not in given:
            raise InputMissing(spec, path, entry.inputs)
        value = given.get(id_)
        if value is None:
            value = outside(input_variable(id_), path)
        if value is None:
            value = spec.default
        if value is None:
            raise InputMissing(spec, path, entry.inputs)
        if not isinstance(value, str):
            raise ExpandError(f"input:{id_}", path, f"was supplied as {type(value).__name__}, not as a string")
        # What the file itself says in plain text is no secret.
        return value, not spec.password and (value == spec.default or value in spec.options)

    texts = _Text(elsewhere, fixed, supplied)

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
    # Before the headers: where to go is what a person is asked for first.
    url = None if entry.url is None else texts.expand(entry.url, "url")
    args = tuple([texts.expand(arg, f"args[{i}]") for i, arg in enumerate(entry.args)])
    headers = {key: texts.expand(value, show_path(("headers", key))) for key, value in entry.headers.items()}
    # A blank at either end is no part of what a header says (RFC 9110, 5.5), and is not sent: `Bearer ${EMPTY}`.
    headers = {key: value.strip(" \t") for key, value in headers.items()}
    more = (outer if inherit else ()) if isinstance(inherit, bool) else inherit
    found = ((name, outer.get(name)) for name in (*INHERITED, *more))
    env = {name: value for name, value in found if value is not None and not value.startswith("()")}
    env.update(from_file)
    env.update(own)
    command = None if entry.command is None else texts.expand(entry.command, "command")
    cwd = str(base if entry.cwd is None else base / texts.expand(entry.cwd, "cwd"))
    helper = None if entry.headers_helper is None else texts.expand(entry.headers_helper, "headersHelper")
    _refuse_unfit(helper or "", "", "headersHelper")
    login = None
    if entry.oauth is not None:
        try:
            login, secrets = expand_oauth(entry.oauth, texts.expand, base)
        except KeyUnread as wrong:
            raise ExpandError(wrong.file, "oauth.privateKey", str(wrong)) from None
        texts.secrets |= secrets
    every = "".join((command or "", *args, *own, *own.values(), cwd, url or "", *headers.values()))
    if not (every.isascii() and every.isprintable()):  # else it can be passed on anywhere
        for path, text in _passed(command, args, own, cwd, url, headers):
            _refuse_unfit(text, "", path)
    return Expanded(
        command=command,
        args=args,
        env=env,
        cwd=cwd,
        url=url,
        headers=headers,
        secrets=texts.secrets | _written_secrets(own, from_file, headers),
        taken=tuple(taken),
        kept=tuple(texts.kept),
        headers_helper=helper,
        oauth=login,
    )


def _passed(
    command: str | None,
    args: tuple[str, ...],
    own: Mapping[str, str],
    cwd: str,
    url: str | None,
    headers: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """All that is passed on of an entry, each with its place: what was made in code no reader has looked at."""
    if command is not None:
        yield "command", command
    yield from ((f"args[{i}]", arg) for i, arg in enumerate(args))
    for name, value in own.items():
        yield show_path(("env", name)), name + value
    yield "cwd", cwd
    if url is not None:
        yield "url", url
    for name, value in headers.items():
        yield show_path(("headers", name)), value


def _written_secrets(own: Mapping[str, str], from_file: Mapping[str, str], headers: Mapping[str, str]) -> set[str]:
    """What may be secret wherever it was written: env values of telling names, and headers."""
    found = {value for each in (own, from_file) for name, value in each.items() if _SECRET_NAME.search(name)}
    return {value for value in found if len(value) >= _SHORTEST_SECRET} | header_secrets(headers)


def header_secrets(headers: Mapping[str, str]) -> set[str]:
    """What must not be shown of headers: all values but of those that say nothing about a login, and their parts.

    Args:
        headers: by name.

    Returns:
        Texts of four characters and more.
    """
    told = (value for name, value in headers.items() if name.lower() not in _NO_SECRETS)
    return {part for value in told for part in _parts(value) if len(part) >= _SHORTEST_SECRET}


def _parts(value: str) -> Iterator[str]:
    """A header's value and what of it might be repeated alone: its words, and what is said under a name (``name=word``)."""
    yield value
    for word in re.split(r"[;,\s]+", value):
        named = word.partition("=")[2]
        each = (named if named.strip("=") else word).strip("\"'")  # what ends with `=` may be base64
        if each.lower() not in _SCHEMES:
            yield from (each, each.rstrip("="))
