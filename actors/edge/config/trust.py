"""Which servers of discovered files a person has approved.

A project's ``.mcp.json`` comes with the project, so what it starts is asked about first. An approval is for one entry of one
file, as it was: a hash of all that decides what runs. That is its command, args, env, url, cwd, envFile and headersHelper as
written; what the
file declares as the default of each input they refer to; and what is in the env file. Change one of them and it is asked about
again. A hash, and never a value, is all that is kept.

The file is its place: its folder as it really is, and its name there. Where a ``.mcp.json`` that is a link leads to does not
count, as relative paths in it are those of the folder that it lies in: a link to an approved file borrows no approval.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from ...model.config import InputSpec, ServerEntry
from ...model.errors import ConfigError, WriteFailed
from .atomic import write_atomic
from .env_file import decode_env_file, parse_env_file
from .expand import ExpandError, expand
from .lock import LockFailed, LockHeld, locked
from .regular import read_regular

__all__ = ["TrustStore", "check_shown", "env_file_of", "fingerprint", "inputs_of", "unapprovable", "variables_of"]


_NOT_READ = object()


def fingerprint(entry: ServerEntry, env_file: Any = _NOT_READ) -> str:
    """The hash an approval is of: hex SHA-256 of what decides what an entry runs (see the module).

    Reads the entry's env file, if it has one: in a thread of its own where that may not wait. Never raises.

    Args:
        entry: as written.
        env_file: what is in its env file, as `env_file_of` gave it to who was shown it; without it, it is read.
    """
    there = env_file_of(entry) if env_file is _NOT_READ else env_file
    said = [
        *(entry.command, entry.args, sorted(entry.env.items()), entry.url, entry.cwd, entry.env_file),
        None if entry.env_file is None else "absent" if there is None else hashlib.sha256(there).hexdigest(),
        [(each.id, each.default) for each in inputs_of(entry)],
        # Only where there is one, so that approvals of before hold.
        *([entry.headers_helper] if entry.headers_helper is not None else []),
    ]
    return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


def inputs_of(entry: ServerEntry) -> list[InputSpec]:
    """The inputs that the file declares and that an entry's command, args, env, cwd, envFile or url refer to, by id."""
    texts = [entry.command, *entry.args, *entry.env.values(), entry.url, entry.cwd, entry.env_file]
    texts.append(entry.headers_helper)
    found = {each.id: each for each in entry.inputs if any(f"${{input:{each.id}}}" in text for text in texts if text)}
    return [found[id_] for id_ in sorted(found)]


def unapprovable(entry: ServerEntry) -> str | None:
    """Why no approval can cover what an entry would run, in one line; None when one can."""
    if entry.env_file is not None and "${input:" in entry.env_file:
        return (
            "the path of its envFile refers to an input, so nobody can say now what will be in it: write the path out"
        )
    return None


def check_shown(shown: ServerEntry | None, entry: ServerEntry) -> None:
    """Whether an entry, as it reads now, may be approved by who was shown another reading of it.

    Args:
        shown: what was shown; None when no server of that name was.
        entry: as it reads now.

    Raises:
        ConfigError: it would run something else, or comes from another file.
    """
    same = shown is not None and shown.source == entry.source and shown.server is entry.server
    if shown is None or not same or fingerprint(shown) != fingerprint(entry):
        why = f"server {entry.name!r} was not approved: it has changed since it was shown; look again"
        raise ConfigError(why, file=entry.source, line=entry.line)


def env_file_of(entry: ServerEntry) -> bytes | None:
    """What is in an entry's env file as it is now; None when it has none, or it cannot be had. Never raises."""
    if entry.env_file is None:
        return None
    try:
        # Its path is expanded as one of a folder is, and before any env of the entry's own.
        path = expand(ServerEntry(entry.name, cwd=entry.env_file, inputs=entry.inputs, source=entry.source)).cwd
        return read_regular(Path(path or ""))
    except (ExpandError, OSError, ValueError):
        return None


def variables_of(env_file: bytes | None) -> dict[str, str]:
    """What an env file sets, of what `env_file_of` gave; nothing when no server could be started with it. Never raises."""
    try:
        return {} if env_file is None else parse_env_file(decode_env_file(env_file))
    except ValueError:
        return {}


def _place(file: str | Path) -> str:
    folder, name = os.path.split(os.path.abspath(file))  # noqa: PTH100 — `Path` has no call that follows no last link
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


class TrustStore:
    """The approvals of one person, kept as JSON: ``{"approved": {FILE: {SERVER: HASH}}}``, mode 0600.

    A store that is missing, spoilt or unreadable approves nothing. Nothing is written over one that cannot be read: it may
    hold what a person approved. Keys that we do not know are kept, and a link to the file stays one.

    Args:
        path: the file; None for ``trust.json`` in the user's state folder of playbill.
        lock_timeout: seconds to wait for another process's lock.
    """

    def __init__(self, path: Path | None = None, *, lock_timeout: float = 10.0) -> None:
        self.path = path if path is not None else user_state_path("playbill") / "trust.json"
        self._lock_timeout = lock_timeout
        self._seen: tuple[Any, dict[str, dict[str, str]]] = (None, {})

    def approved(self, entry: ServerEntry, file: str | Path) -> bool:
        """Whether an entry of a file was approved as it is now; never one that is `unapprovable`."""
        if unapprovable(entry) is not None:
            return False
        kept = self._load().get(_place(file), {}).get(entry.name)
        return kept is not None and kept == fingerprint(entry)

    def fingerprint(self, file: str | Path) -> str:
        """A hash of all approvals of a file as they now are. Never raises."""
        said = sorted(self._load().get(_place(file), {}).items())
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def approve(self, entry: ServerEntry, file: str | Path, shown: str | None = None) -> None:
        """Approve an entry of a file as it is now.

        Args:
            entry: what is approved.
            file: where it is.
            shown: its `fingerprint` when it was shown, so that no other env file is approved; None for that of now.

        Raises:
            ConfigError: the entry is `unapprovable`.
            WriteFailed: the approval cannot be kept.
        """
        if (wrong := unapprovable(entry)) is not None:
            why = f"server {entry.name!r} was not approved: {wrong}"
            raise ConfigError(why, file=entry.source, line=entry.line)
        said = fingerprint(entry) if shown is None else shown
        place = _place(file)
        if self._load().get(place, {}).get(entry.name) == said:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            target = Path(os.path.realpath(self.path))
            with locked(target, self._lock_timeout):
                kept = self._read()
                kept["approved"].setdefault(place, {})[entry.name] = said
                text = json.dumps(kept, indent=2, sort_keys=True)
                write_atomic(target, text.encode("utf-8", "surrogatepass") + b"\n")
        except LockHeld:
            why = f"another process has held its lock for more than {self._lock_timeout:g} s"
            raise WriteFailed(str(self.path), why) from None
        except LockFailed as failed:
            why = f"its lock cannot be taken: {(failed.error.strerror or str(failed.error)).lower()}"
            raise WriteFailed(str(self.path), why) from None
        except OSError as error:
            raise WriteFailed(str(self.path), (error.strerror or str(error)).lower()) from None

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            there = self.path.stat()
        except OSError:
            return {}
        stamp = (there.st_mtime_ns, there.st_size, there.st_ino)
        if self._seen[0] != stamp:
            try:
                approved = self._read()["approved"]
            except (OSError, WriteFailed):
                approved = {}
            self._seen = (stamp, approved)
        return self._seen[1]

    def _read(self) -> dict[str, Any]:
        """The whole document, with its ``approved``; a new one when there is none.

        Raises:
            WriteFailed: it is no such document, so that nothing may be written over it.
            OSError: it cannot be read.
        """
        try:
            found: Any = json.loads(read_regular(self.path))
        except FileNotFoundError:
            return {"approved": {}}
        except (ValueError, RecursionError):
            found = None
        approved = found.setdefault("approved", {}) if isinstance(found, dict) else None
        if not isinstance(approved, dict) or not all(isinstance(each, dict) for each in approved.values()):
            raise WriteFailed(str(self.path), "what is there is not a list of approvals: mend it, or remove it")
        document: dict[str, Any] = found
        return document
