"""The `Connect` of a real host: `make_connect` with a watcher behind it, and the embedder's inputs before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from types import TracebackType

from ...model.config import ServerEntry
from ...ports import Client, Connect, Connection, ConnectionFailed, EraMemory, Opening
from ..config.expand import Expanded, ExpandError
from ..config.inputs import Inputs, Supply
from .session import make_connect
from .warden import Warden, open_warden
from .wire import LoginFor

__all__ = ["open_connect"]


@asynccontextmanager
async def open_connect(
    inputs: Inputs | None = None, inherit_env: Collection[str] | bool = (), login_for: LoginFor | None = None
) -> AsyncIterator[Connect]:
    """A `Connect` for as long as servers run; its watcher process is started with the first one, and ends on leaving.

    Args:
        inputs: supplies ``${input:ID}``.
        inherit_env: names of our environment that servers get besides the usual ones; True for all of it.
        login_for: the logins of remote servers; None: there are none.

    Raises:
        TypeError: either is something else.
    """
    supply = Supply(inputs, inherit_env)
    async with open_warden() as warden:

        def connect(
            entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
        ) -> Opening:
            return _Expanding(supply, warden, entry, eras, on_list_changed, client, login_for)

        yield connect


class _Expanding:
    """An `Opening` that expands the entry first; that may wait for an answer, and nothing runs yet."""

    def __init__(
        self,
        supply: Supply,
        warden: Warden,
        entry: ServerEntry,
        eras: EraMemory,
        on_list_changed: Callable[[], None],
        client: Client | None,
        login_for: LoginFor | None,
    ) -> None:
        self._client = client
        self._login_for = login_for
        self._supply = supply
        self._warden = warden
        self._entry = entry
        self._eras = eras
        self._on_list_changed = on_list_changed
        self._opening: Opening | None = None

    async def __aenter__(self) -> Connection:
        try:
            launch = await self._supply.expand(self._entry)
        except ExpandError as error:
            raise ConnectionFailed(str(error), futile=error.futile) from None

        def expanded(entry: ServerEntry) -> Expanded:
            return launch

        connect = make_connect(warden=self._warden, expand=expanded, login_for=self._login_for)
        told = self._on_list_changed
        self._opening = connect(self._entry, eras=self._eras, on_list_changed=told, client=self._client)
        return await self._opening.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        assert self._opening is not None  # left only when it was entered
        return await self._opening.__aexit__(kind, error, trace)

    def stderr_tail(self) -> str:
        """As `ports.Opening`."""
        return "" if self._opening is None else self._opening.stderr_tail()
