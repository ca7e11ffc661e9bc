"""What an embedding program answers to servers, as values: its handlers, and who asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, get_args

from attrs import field, frozen

__all__ = ["Asker", "ClientHandlers", "LogLevel", "LogMessage", "Root"]

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def _info() -> LogLevel:
    return "info"


@frozen
class Asker:
    """Which server asks, or tells.

    Args:
        server: its name in the configuration.
        generation: of the incarnation, as in `ServerState`: another one has forgotten what this one asked.
        protocol_version: as negotiated with it; None while its handshake lasts.
    """

    server: str
    generation: int
    protocol_version: str | None = None


@frozen
class Root:
    """A place that servers may work in.

    Args:
        uri: of it; the protocol knows ``file://`` only.
        name: for people, or None.
    """

    uri: str
    name: str | None = None


@frozen
class LogMessage:
    """One message of a server's log.

    Args:
        level: as the server says.
        data: any JSON value.
        logger: who of the server says it, or None.
        dropped: how many messages before this one were dropped, because nobody had taken them yet.
    """

    level: str
    data: Any
    logger: str | None = None
    dropped: int = 0


def _async_or_none(instance: ClientHandlers, attribute: Any, value: Any) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{attribute.name} is an async function, or None, not {value!r}")


def _roots(value: Any) -> Any:
    if value is None or callable(value):
        return value
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"roots are a list of Root or of URIs, or an async function, not {value!r}")
    return tuple(as_root(each) for each in value)


def as_root(value: Any) -> Root:
    """A root, of itself or of its URI.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, Root):
        return value
    if isinstance(value, str):
        return Root(value)
    raise TypeError(f"a root is a Root or a URI, not {value!r}")


def _positive(instance: ClientHandlers, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{attribute.name} is a number above 0, not {value!r}")


def _count(instance: ClientHandlers, attribute: Any, value: Any) -> None:
    least = 1 if attribute.name == "at_once" else 0
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{attribute.name} is a whole number, {least} or more, not {value!r}")


def _level(instance: ClientHandlers, attribute: Any, value: Any) -> None:
    if value not in get_args(LogLevel):
        raise ValueError(f"log_level is one of {', '.join(get_args(LogLevel))}, not {value!r}")


@frozen(kw_only=True)
class ClientHandlers:
    """What servers may ask of the embedding program. What has no handler is not announced, and is refused.

    Each handler is an async function whose first argument is an `Asker`. It runs in a task of its own. One that raises, hangs
    or returns nonsense costs only the request that asked: the server is told that it was not answered. When the server dies,
    cancels its request, or the call in whose course it asked is given up, the handler is cancelled.

    Args:
        sampling: (asker, ``mcp.types.CreateMessageRequestParams``) → ``CreateMessageResult`` (or its JSON form).
        elicitation: (asker, ``ElicitRequestFormParams`` or ``ElicitRequestURLParams``) → ``ElicitResult`` (or its JSON form).
        elicitation_complete: (asker, the elicitation's id): what a person was sent to a URL for is done. Nothing is answered.
        roots: the `Root` values or URIs; or a function of the asker that gives them. See `Host.roots_changed`.
        logging: (asker, `LogMessage`). Nothing is answered; what comes faster than it is taken is dropped, the oldest first.
        log_level: the least severe that servers are asked to log.
        sampling_tools: whether the sampling handler takes requests with tools.
        timeout: seconds within which a handler answers, the wait for its turn included; of ``logging`` and
            ``elicitation_complete`` 10 s at most.
        at_once: how many questions of one server are answered at the same time.
        waiting: how many more of one server may wait for that; those beyond are refused.

    Raises:
        TypeError, ValueError: one of them is something else.
    """

    sampling: Callable[[Asker, Any], Awaitable[Any]] | None = field(default=None, validator=_async_or_none)
    elicitation: Callable[[Asker, Any], Awaitable[Any]] | None = field(default=None, validator=_async_or_none)
    elicitation_complete: Callable[[Asker, str], Awaitable[None]] | None = field(default=None, validator=_async_or_none)
    roots: Sequence[Root | str] | Callable[[Asker], Awaitable[Sequence[Root | str]]] | None = field(
        default=None, converter=_roots
    )
    logging: Callable[[Asker, LogMessage], Awaitable[None]] | None = field(default=None, validator=_async_or_none)
    log_level: LogLevel = field(factory=_info, validator=_level)
    sampling_tools: bool = False
    timeout: float = field(default=300.0, validator=_positive)
    at_once: int = field(default=4, validator=_count)
    waiting: int = field(default=16, validator=_count)
