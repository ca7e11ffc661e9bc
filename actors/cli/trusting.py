"""The verb that approves what a project would run: `trust`. What is approved is what was shown, and nothing that came since."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..edge.config.file import FileStore
from ..edge.config.trust import TrustStore, fingerprint, inputs_of
from ..model.config import Config, ServerEntry
from ..model.nearest import nearest
from .configs import load, near, place
from .errors import CliError, Exit, diagnose
from .names import unknown
from .options import EditOptions
from .render import print_json

__all__ = ["shown", "trust_servers"]

SCHEMA = 1

_REFERENCE = re.compile(r"\$\{?(?:env:)?([A-Za-z_][A-Za-z0-9_]*)|%([A-Za-z_][A-Za-z0-9_]*)%")
"""A variable in a text: one that we expand, or one that a shell would."""

_DECIDES = re.compile(
    r"PATH|PATHEXT|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|PYTHON.*|BASH_ENV|ENV|PERL5LIB|PERL5OPT|RUBYLIB|RUBYOPT"
    r"|_?JAVA(?:_TOOL)?_OPTIONS",
    re.IGNORECASE,
)
"""The names of variables that decide what a program is, or what it loads."""


def trust_servers(names: Sequence[str], *, every: bool, yes: bool, options: EditOptions) -> int:
    """Show what servers would run, ask, and keep the approval.

    Args:
        names: the servers; empty with ``every``.
        every: all that are not trusted yet.
        yes: do not ask.
        options: which file, and how to tell. A file that is named is approved as one that is found.

    Returns:
        `Exit.OK`, or `Exit.FAILURE` when a person declined.

    Raises:
        UnknownServer: there is no such server.
        CliError: nothing is named, or there is no terminal to ask on; or an entry is invalid.
        ConfigError: the config cannot be read.
        WriteFailed: the approval cannot be kept.
    """
    approvals = TrustStore()
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
    approved: list[ServerEntry] = []
    declined = False
    for entry in asked:
        hashed = fingerprint(entry)
        # Who is asked sees what about, whatever else is quiet.
        if not yes or not (options.quiet or options.json):
            print("\n".join(shown(entry)), file=sys.stderr if options.json else sys.stdout, flush=True)
        if not (yes or _agreed(entry)):
            declined = True
            continue
        approvals.approve(entry, entry.source or "", hashed)
        approved.append(entry)
        if not options.json and not options.quiet:
            print(f"trusted {entry.name!r}")
    if options.json:
        print_json({"schema": SCHEMA, "verb": "trust", "approved": [_as_json(each) for each in approved]})
    if config.error is not None:
        diagnose(f"warning: {config.error}")
    if declined:
        left = ", ".join(repr(entry.name) for entry in asked if entry not in approved)
        diagnose(f"not trusted: {left}")
    return Exit.FAILURE if declined else Exit.OK


def shown(entry: ServerEntry) -> list[str]:
    """Exactly what an entry would run, one thing a line; what could deceive the eye is spelled out.

    Of its variables those values that decide what runs: what the rest refers to, ``PATH`` and its like. Others may be secrets.
    """
    lines = [f"server {_plain(entry.name)}, from {_plain(near(place(entry)))}, would run:"]
    lines.append(f"  command  {_plain(entry.command or '')}")
    lines += [f"  arg      {_plain(arg)}" for arg in entry.args]
    folder = entry.cwd if entry.cwd is not None else str(Path(entry.source or ".").parent)
    lines.append(f"  cwd      {_plain(folder)}")
    telling = _telling(entry)
    lines += [
        f"  env      {_plain(name)}={_plain(value) if name in telling else '***'}" for name, value in entry.env.items()
    ]
    if entry.env_file is not None:
        lines.append(f"  envFile  {_plain(entry.env_file)}")
    if entry.url is not None:
        lines.append(f"  url      {_plain(entry.url)}")
    for each in inputs_of(entry):
        default = "has no default" if each.default is None else f"is by default {_plain(each.default)}"
        lines.append(f"  input    {_plain(each.id)} {default}")
    return lines


def _telling(entry: ServerEntry) -> set[str]:
    """The variables of an entry whose values decide what runs: those it names where that is said, and what these name."""
    texts = [entry.command or "", *entry.args, entry.cwd or "", entry.env_file or ""]
    found: set[str] = set()
    waiting = [name for name in entry.env if _DECIDES.fullmatch(name)]
    while texts or waiting:
        for one, other in (each for text in texts for each in _REFERENCE.findall(text)):
            waiting.append(one or other)
        new = {name for name in waiting if name in entry.env} - found
        found |= new
        texts, waiting = [entry.env[name] for name in new], []
    return found


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
    if entry.command is None:
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
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _as_json(entry: ServerEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "file": entry.source,
        "line": entry.line,
        "command": entry.command,
        "args": list(entry.args),
        "cwd": entry.cwd,
        "env": list(entry.env),
        "env_file": entry.env_file,
        "url": entry.url,
        "hash": fingerprint(entry),
    }
