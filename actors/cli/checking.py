"""The verb that validates: `check` starts nothing, writes nothing, and says of every file in force what is wrong, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import asdict, evolve

from ..edge.auth.kept import login_kept
from ..edge.config.check import UNTRUSTED, Finding, check_file, check_shadows
from ..edge.config.file import FileStore
from ..edge.config.scopes import ScopedStore
from ..model.config import ServerEntry
from ..model.errors import ConfigError
from .configs import near, open_store
from .errors import Exit, one_line
from .listing import NEEDS_LOGIN, how_to_log_in, waiting_for_trust
from .options import EditOptions
from .render import print_json

__all__ = ["check_config"]

SCHEMA = 1


def check_config(*, strict: bool, options: EditOptions) -> int:
    """Check all files that apply.

    Args:
        strict: warnings count as errors.
        options: which files, and how to tell.

    Returns:
        `Exit.CONFIG` when there is an error (or, with ``strict``, a warning), else `Exit.OK`.

    Raises:
        CliError: both a path and a scope are given.
        ConfigError: there is no file at all.
    """
    store = open_store(options.config, options.scope)
    stores = _stores(store)
    findings = [each for one in stores for each in check_file(one, more=_login)]
    if len(stores) == 2:
        findings += _shadows(*stores)
    count = Counter(each.severity for each in findings)
    if options.json:
        print_json(
            {
                "schema": SCHEMA,
                "files": [str(each.path) for each in stores],
                "errors": count["error"],
                "warnings": count["warning"],
                "findings": [asdict(each) for each in findings],
            }
        )
    else:
        for each in _together(findings):
            if not options.quiet or each.severity == "error" or (strict and each.severity == "warning"):
                print(line_of(each))
        if not options.quiet:
            files = ", ".join(near(each.path) for each in stores)
            print(one_line(f"{files}: {_many(count['error'], 'error')}, {_many(count['warning'], 'warning')}"))
    return Exit.CONFIG if count["error"] or (strict and count["warning"]) else Exit.OK


def line_of(finding: Finding) -> str:
    """A finding as ``file:line:column: path: message``; all but an error say before the message what they are."""
    place = near(finding.file)
    if finding.line is not None:
        place += f":{finding.line}:{finding.column or 1}"
    word = "" if finding.severity == "error" else f"{finding.severity}: "
    parts = [place, *([finding.path] if finding.path else []), f"{word}{finding.message}"]
    return one_line(": ".join(parts))


def _login(entry: ServerEntry) -> str | None:
    return f"{NEEDS_LOGIN}{how_to_log_in(entry.name)}" if login_kept(entry) == "needed" else None


def _together(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of several entries that only want approval in one: where the first is, with the names of all."""
    waiting = [each for each in findings if each.message.startswith(f"{UNTRUSTED}run ")]
    if len(waiting) < 2:
        return list(findings)
    first = waiting[0]
    one = evolve(first, path=None, server=None, message=waiting_for_trust([each.server or "" for each in waiting]))
    return [one if each is first else each for each in findings if each is first or each not in waiting]


def _stores(store: Any) -> list[FileStore]:
    """The files to check, the nearest first.

    Raises:
        ConfigError: there is none.
    """
    if isinstance(store, ScopedStore):
        found = [store.store(each.scope, each.path) for each in store.files()]
        if not found:
            store.load()  # says where they were looked for
        return found
    assert isinstance(store, FileStore)
    return [store]


def _shadows(near_file: FileStore, far: FileStore) -> list[Finding]:
    try:
        config = near_file.load()
    except ConfigError:
        return []
    return check_shadows(config, far)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
