"""Which servers of discovered files a person has approved.

A project's ``.mcp.json`` comes with the project, so what it starts is asked about first. An approval is for one entry of one
file, as it was: a hash of its command, args, the names in its env, and its url; of its cwd and envFile too where it has them,
as they decide what a command is. Change one of them and it is asked about again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from ...model.config import ServerEntry
from ...model.errors import WriteFailed
from .atomic import write_atomic

__all__ = ["TrustStore", "fingerprint"]


def fingerprint(entry: ServerEntry) -> str:
    """The hash an approval is of: hex SHA-256 of command, args, sorted env keys, url, and cwd and envFile if there are any."""
    said = [entry.command, list(entry.args), sorted(entry.env), entry.url]
    if entry.cwd is not None or entry.env_file is not None:
        said += [entry.cwd, entry.env_file]
    return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


class TrustStore:
    """The approvals of one person, kept as JSON: ``{"approved": {FILE: {SERVER: HASH}}}``, mode 0600.

    A store that is missing or spoilt approves nothing.

    Args:
        path: the file; None for ``trust.json`` in the user's state folder of playbill.
        lock_timeout: seconds to wait for another process's lock.
    """

    def __init__(self, path: Path | None = None, *, lock_timeout: float = 10.0) -> None:
        self.path = path if path is not None else user_state_path("playbill") / "trust.json"
        self._lock_timeout = lock_timeout
        self._seen: tuple[Any, dict[str, dict[str, str]]] = (None, {})

    def approved(self, entry: ServerEntry, file: str | Path) -> bool:
        """Whether an entry of a file was approved as it is now."""
        return self._load().get(os.path.realpath(file), {}).get(entry.name) == fingerprint(entry)

    def fingerprint(self, file: str | Path) -> str:
        """A hash of all approvals of a file as they now are. Never raises."""
        said = sorted(self._load().get(os.path.realpath(file), {}).items())
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def approve(self, entry: ServerEntry, file: str | Path) -> None:
        """Approve an entry of a file as it is now.

        Raises:
            WriteFailed: the approval cannot be kept.
        """
        if self.approved(entry, file):
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(
                self.path.with_name(self.path.name + ".lock"), timeout=self._lock_timeout, thread_local=False
            ):
                approved = {name: dict(entries) for name, entries in self._load().items()}
                approved.setdefault(os.path.realpath(file), {})[entry.name] = fingerprint(entry)
                text = json.dumps({"approved": approved}, indent=2, sort_keys=True)
                write_atomic(self.path, text.encode("utf-8", "surrogatepass") + b"\n")
        except Timeout:
            why = f"another process has held its lock for more than {self._lock_timeout:g} s"
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
            self._seen = (stamp, self._parse())
        return self._seen[1]

    def _parse(self) -> dict[str, dict[str, str]]:
        try:
            found = json.loads(self.path.read_bytes())["approved"]
            return {file: dict(entries) for file, entries in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
