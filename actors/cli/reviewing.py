"""The trust review of the picker: what a project's server would run is shown, and exactly that is approved."""

from __future__ import annotations

from pathlib import Path

import trio

from ..edge.config.discover import Scope
from ..edge.config.file import FileStore
from ..edge.config.trust import TrustStore, env_file_of, fingerprint, unapprovable, variables_of
from ..host import Host
from ..model.config import ServerEntry
from ..model.errors import ConfigError, UnknownServer
from ..model.nearest import nearest
from ..model.snapshot import Snapshot
from ..picker.values import Review
from .configs import load

__all__ = ["FileReviewer"]


class FileReviewer:
    """Reads an entry from its file, shows it as `playbill trust` does, and keeps an approval of what was shown.

    The approval is of the fingerprint that was shown: should the file change before it is kept, it approves nothing.

    Args:
        host: that runs the servers; it reads its config anew after an approval.
        path, scope: of the config, as the host was opened with.
    """

    def __init__(self, host: Host, path: str | None, scope: Scope | None) -> None:
        self._host = host
        self._path = path
        self._scope: Scope | None = scope
        self._approvals = TrustStore()
        self._seen: dict[tuple[str, str], ServerEntry] = {}

    async def review(self, server: str) -> Review:
        """What the server would run, one thing a line. A checkpoint.

        Raises:
            UnknownServer: the file has it no more.
            ConfigError: the file cannot be read, or the entry is such that nobody can approve it.
        """
        return await trio.to_thread.run_sync(self._look, server)

    async def approve(self, server: str, seal: str) -> Snapshot:
        """Keep the approval of what was shown, and let the host read it. A checkpoint.

        Raises:
            ConfigError: the server is not what was shown any more, or the config cannot be read.
            WriteFailed: the approval cannot be kept.
        """
        entry = self._seen.get((server, seal))
        if entry is None:
            raise ConfigError(f"server {server!r} was not shown like that: review it again")
        source = entry.source or ""
        await trio.to_thread.run_sync(self._approvals.approve, entry, source, seal)
        snapshot = await self._host.reload()
        state = snapshot.model.server(server)
        if state is not None and state.phase == "untrusted":
            raise ConfigError(f"server {server!r} is not what was shown any more: review it again", file=entry.source)
        return snapshot

    def _look(self, server: str) -> Review:
        """In a worker thread."""
        from .trusting import shown  # not needed to begin with

        if self._path is not None and self._scope is None:
            config = FileStore(Path(self._path), trust=self._approvals).load()
        else:
            config = load(self._path, self._scope)
        entry = config.get(server)
        if entry is None:
            raise UnknownServer(server, nearest(server, [each.name for each in config.servers]), config.path)
        if entry.error is not None:
            raise ConfigError(entry.error, file=entry.source, line=entry.line)
        if (wrong := unapprovable(entry)) is not None:
            raise ConfigError(f"server {server!r} cannot be approved: {wrong}", file=entry.source, line=entry.line)
        env_file = env_file_of(entry)  # once: what is approved is what is shown
        seal = fingerprint(entry, env_file)
        self._seen[(server, seal)] = entry
        return Review(tuple(shown(entry, variables_of(env_file))), seal)
