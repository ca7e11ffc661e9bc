"""The wire over a pair of the SDK's own message streams, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .wire import Wire

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher

__all__ = ["StreamWire", "leaf_of"]


class StreamWire(Wire):
    """A pair of the SDK's message streams under the SDK's own dispatcher."""

    def __init__(self, scrub: Callable[[str], str], read: Any, write: Any) -> None:
        super().__init__(scrub)
        self._streams = (read, write)
        self.cause = ""
        """What is known of a failure that the streams themselves do not tell."""

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        return JSONRPCDispatcher(*self._streams)

    def dispatcher_ended(self) -> None:
        self.lose(self.cause or "the server closed the connection")

    def last_words(self) -> str:
        return self.scrub(self.cause)


def leaf_of(error: BaseException) -> str:
    """The first exception in a group of groups, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
