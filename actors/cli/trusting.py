"""The verb that approves what a project would run: `trust`. What is approved is what was shown, and nothing that came since."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..edge.config.file import FileStore
from ..edge.config.trust import TrustStore, env_file_of, fingerprint, inputs_of, unapprovable, variables_of
from ..model.config import Config, ServerEntry
from ..model.mask import looks_secret, mask_text
from ..model.nearest import nearest
from .configs import load, near, place
from .errors import CliError, Exit, diagnose
from .listing import what_runs_json
from .names import unknown
from .options import EditOptions
from .patience import editing
from .render import print_json

__all__ = ["shown", "trust_servers"]

SCHEMA = 1

_REFERENCE = re.compile(r"\$\{?(?:env:)?([A-Za-z_][A-Za-z0-9_]*)|%([A-Za-z_][A-Za-z0-9_]*)%")
"""A variable in a text: one that we expand, or one that a shell would."""

_DECIDES = re.compile(
    # what a program is, and what the loader puts into it
    r"PATH|PATHEXT|LD_.*|DYLD_.*|SHELL|COMSPEC|SYSTEMROOT|WINDIR|HOME|USERPROFILE|APPDATA|LOCALAPPDATA|XDG_.*|TMPDIR|IFS"
    r"|ENV|BASH_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|ZDOTDIR|.*EDITOR|VISUAL|.*PAGER|BROWSER|LESSOPEN|LESSCLOSE"
    # what an interpreter loads
    r"|NODE_.*|ELECTRON_.*|DENO_.*|BUN_.*|PYTHON.*|VIRTUAL_ENV|CONDA_.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_(?:GEMFILE|PATH|BIN|MIRROR.*)"
    r"|PHP.*|LUA_.*|.*JAVA.*OPT.*|JDK_.*|JRE_.*|JAVA_HOME|CLASSPATH|MAVEN_.*|GRADLE_.*|DOTNET_.*|CORECLR_.*|COR_.*|COMPLUS_.*"
    r"|CARGO.*|RUST.*|GO(?:PROXY|FLAGS|PATH|ROOT|BIN|SUMDB|NOSUMDB|NOSUMCHECK|PRIVATE|NOPROXY|INSECURE|ENV|TOOLCHAIN|VCS)"
    # where a package or a container is had from
    r"|NPM_.*|YARN_.*|PNPM_.*|COREPACK_.*|UV_.*|PIP_.*|PIPX_.*|POETRY_.*|PDM_.*|HATCH_.*|DOCKER_.*|CONTAINER_.*|BUILDAH_.*"
    r"|GIT_.*|SSH_.*|.*_PROXY|.*_CA_(?:BUNDLE|CERTS?|FILE|PATH)|SSL_CERT_.*|CURL_.*|WGETRC|OPENSSL_.*",
    re.IGNORECASE,
)
"""The names of variables that decide what a program is, what it loads, or where it gets what it loads."""

_CREDENTIALS = re.compile(r"(?<=://)[\w.~%!+:-]*@")
"""User and password in a URL: only of characters that run nothing, or an approval could be had of what was not shown."""


def trust_servers(names: Sequence[str], *, every: bool, yes: bool, options: EditOptions) -> int:
    """Show what servers would run, ask, and keep the approval.

    Args:
        names: the servers; empty with ``every``.
        every: all that are not trusted yet.
        yes: do not ask.
        options: which file, and how to tell. A file that is named is approved as one that is found.

    Returns:
        `Exit.OK`, or `Exit.FAILURE` when a person declined, or one cannot be approved.

    Raises:
        UnknownServer: there is no such server.
        CliError: nothing is named, or there is no terminal to ask on; or an entry is invalid.
        ConfigError: the config cannot be read.
        WriteFailed: the approval cannot be kept.
    """
    approvals = TrustStore() if options.timeout is None else TrustStore(lock_timeout=options.timeout)
    if options.config is not None and options.scope is None:
        config = FileStore(options.config, trust=approvals).load()
    else:
        config = load(options.config, options.scope)
    entries = _chosen(config, names, every)
    asked = [entry for entry in entries if not entry.trusted]
    for entry in entries:
        if entry.trusted and not options.quiet and not options.json:
            print(f"{entry.name!r} needs no approval: {_why(entry)}")
    if every and not asked and not options.json and not options.quiet:
        print("nothing needs approval")
    approved: dict[str, dict[str, Any]] = {}
    declined = False
    for entry in asked:
        if (wrong := unapprovable(entry)) is not None:
            diagnose(f"server {entry.name!r} cannot be approved: {wrong}")
            declined = True
            continue
        env_file = env_file_of(entry)  # once: what is approved is what is shown
        hashed = fingerprint(entry, env_file)
        # Who is asked sees what about, whatever else is quiet.
        if not yes or not (options.quiet or options.json):
            lines = shown(entry, variables_of(env_file))
            print("\n".join(lines), file=sys.stderr if options.json else sys.stdout, flush=True)
        if not (yes or _agreed(entry)):
            declined = True
            continue
        with editing([approvals.path]):
            approvals.approve(entry, entry.source or "", hashed)
        approved[entry.name] = _as_json(entry, hashed)
        if not options.json and not options.quiet:
            print(f"trusted {entry.name!r}")
    if options.json:
        print_json({"schema": SCHEMA, "verb": "trust", "approved": list(approved.values())})
    if config.error is not None:
        diagnose(f"warning: {config.error}")
    if declined:
        left = ", ".join(repr(entry.name) for entry in asked if entry.name not in approved)
        diagnose(f"not trusted: {left}")
    return Exit.FAILURE if declined else Exit.OK


def shown(entry: ServerEntry, from_file: Mapping[str, str]) -> list[str]:
    """Exactly what an entry would run, one thing a line; what could deceive the eye is spelled out.

    Of its variables those values that decide what runs: what the rest refers to, ``PATH`` and its like. Others may be secrets.

    Args:
        entry: as written.
        from_file: what its env file sets.
    """
    lines = [f"server {_plain(entry.name)}, from {_plain(near(place(entry)))}, would run:"]
    if entry.command is not None:
        lines.append(f"  command  {_plain(entry.command)}")
    lines += [f"  arg      {_plain(arg)}" for arg in entry.args]
    lines.append(f"  cwd      {_plain(_folder(entry))}")
    telling = _telling(entry, from_file)
    lines += [
        f"  env      {_plain(name)}={_value(value) if name in telling else '***'}" for name, value in entry.env.items()
    ]
    if entry.env_file is not None:
        file = _plain(entry.env_file)
        lines.append(f"  envFile  {file}")
        lines += [
            f"  env      {_plain(name)}={_value(value)}  (from {file})"
            for name, value in from_file.items()
            if name in telling
        ]
    if entry.url is not None:
        lines.append(f"  url      {_plain(entry.url)}")
    if entry.headers_helper is not None:
        lines.append(f"  headers of {_plain(entry.headers_helper)}")
    for each in inputs_of(entry):
        default = "has no default" if each.default is None else f"is by default {_plain(each.default)}"
        lines.append(f"  input    {_plain(each.id)} {default}")
    return lines


def _folder(entry: ServerEntry) -> str:
    """Where an entry runs: as written, else its file's own folder."""
    return entry.cwd if entry.cwd is not None else str(Path(entry.source or ".").parent)


def _telling(entry: ServerEntry, from_file: Mapping[str, str]) -> set[str]:
    """The variables of an entry whose values decide what runs: those it names where that is said, and what these name."""
    texts = [entry.command or "", *entry.args, entry.cwd or "", entry.env_file or "", entry.headers_helper or ""]
    found: set[str] = set()
    waiting = [name for name in (*entry.env, *from_file) if _DECIDES.fullmatch(name) and not looks_secret(name)]
    while texts or waiting:
        for one, other in (each for text in texts for each in _REFERENCE.findall(text)):
            waiting.append(one or other)
        new = {name for name in waiting if name in entry.env or name in from_file} - found
        found |= new
        # Both: which of the two counts depends on where it is referred to.
        texts, waiting = [each[name] for each in (entry.env, from_file) for name in new if name in each], []
    return found


def _value(text: str) -> str:
    """The value of a variable that decides what runs: all of it but who logs in where."""
    return _plain(_CREDENTIALS.sub("***@", text))


def _plain(text: str) -> str:
    """A text that shows what is in it: every character that is not plainly visible is escaped, an empty one is quoted."""
    if text.isprintable() and text == text.strip() and text:
        return text
    return repr(text)


def _chosen(config: Config, names: Sequence[str], every: bool) -> list[ServerEntry]:
    waiting = [entry.name for entry in config.servers if not entry.trusted and entry.error is None]
    if every and names:
        raise CliError(Exit.USAGE, "--all, or names: not both")
    if not every and not names:
        these = f" (not trusted: {', '.join(waiting)})" if waiting else " (all are trusted)"
        raise CliError(Exit.USAGE, f"name the servers to trust, or --all{these}")
    chosen = []
    for name in dict.fromkeys(waiting if every else names):
        entry = config.get(name)
        if entry is None:
            raise unknown(config, name, nearest(name, [each.name for each in config.servers]))
        if entry.error is not None:
            raise CliError(Exit.CONFIG, entry.error)
        chosen.append(entry)
    return chosen


def _why(entry: ServerEntry) -> str:
    if not entry.starts_something:
        return "it starts no program"
    return "it is trusted as it is"


def _agreed(entry: ServerEntry) -> bool:
    """Ask a person, on the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CliError(
            Exit.USAGE, f"nothing was approved: there is no terminal to ask on; --yes trusts {entry.name!r} as shown"
        )
    sys.stderr.write(f"trust {entry.name!r}? [y/N] ")
    sys.stderr.flush()
    # Not as text: what is no text in the terminal's encoding is no yes, and nothing else.
    return sys.stdin.buffer.readline().strip().lower() in (b"y", b"yes")


def _as_json(entry: ServerEntry, hashed: str) -> dict[str, Any]:
    """What an approval covers: names instead of values, secrets masked as in a listing, and the hash that it is of."""
    return {
        "name": entry.name,
        "file": entry.source,
        "line": entry.line,
        **what_runs_json(entry),
        "cwd": mask_text(_folder(entry)),
        "env": list(entry.env),
        "env_file": None if entry.env_file is None else mask_text(entry.env_file),
        "headers": list(entry.headers),
        "headers_helper": None if entry.headers_helper is None else mask_text(entry.headers_helper),
        "inputs": [each.id for each in inputs_of(entry)],
        "hash": hashed,
    }
