"""Every error a `Host` raises. Each message is one clear line; none carries an expanded secret.

Names and reasons that come from servers are told without control characters and cut; the attributes have them as they are.
"""

from __future__ import annotations

from typing import Any

from .plain import line as one_line
from .plain import quoted

__all__ = [
    "CallTimeout",
    "ConfigError",
    "HostClosed",
    "LoginFailed",
    "NotSupported",
    "OperationTimeout",
    "PlaybillError",
    "ProfileMismatch",
    "RequestRefused",
    "ServerDied",
    "ServerExists",
    "ServerUnavailable",
    "ToolNotOffered",
    "UnknownPrompt",
    "UnknownServer",
    "UnknownTool",
    "WriteFailed",
]


def _hint(near: str | None) -> str:
    return f" (did you mean {quoted(near)}?)" if near is not None else ""


class PlaybillError(Exception):
    """The base of all errors that leave a `Host`. They can be copied and pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with ``args``, which is the message and not what the class takes.
        return (_rebuilt, (type(self), self.args, self.__dict__))


def _rebuilt(kind: type[PlaybillError], args: tuple[Any, ...], state: dict[str, Any]) -> PlaybillError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(PlaybillError):
    """A configuration that cannot be used, placed as exactly as it is known.

    Args:
        message: what is wrong, in one line without the place.
        file: the path of the file, or None for a configuration made in code.
        line, column: 1-based, or None when unknown.
        path: where in the document, such as ``mcpServers.github.args[2]``, or None.

    Attributes:
        nothing: there is no file at all.
    """

    nothing = False

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        super().__init__(message)

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
            if self.column is not None:
                place += f":{self.column}"
        parts = [part for part in (place, self.path) if part]
        return ": ".join([*parts, self.message])


class WriteFailed(PlaybillError):
    """The configuration file could not be written; it is as it was before."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        self.reason = reason
        super().__init__(f"{file}: not written: {reason}")


class UnknownServer(PlaybillError):
    """No server of that name is configured; ``near`` is the most similar one, or None; ``file`` the config file, or None."""

    def __init__(self, name: str, near: str | None = None, file: str | None = None) -> None:
        self.name = name
        self.near = near
        self.file = file
        where = f" in {file}" if file else ""
        super().__init__(f"no server named {quoted(name)} is configured{where}{_hint(near)}")


class ServerExists(PlaybillError):
    """A server of that name is configured already."""

    def __init__(self, name: str, file: str | None = None) -> None:
        self.name = name
        self.file = file
        where = f" in {file}" if file else ""
        super().__init__(f"a server named {quoted(name)} is configured already{where} (pass replace to replace it)")


class UnknownTool(PlaybillError):
    """No tool of that name is known; ``near`` is the most similar one, or None."""

    def __init__(self, name: str, near: str | None = None, *, server: str | None = None) -> None:
        self.name = name
        self.near = near
        self.server = server
        where = f"server {quoted(server)} has no tool named" if server is not None else "no tool is named"
        super().__init__(f"{where} {quoted(name)}{_hint(near)}")


class UnknownPrompt(PlaybillError):
    """The server lists no prompt of that name; ``near`` is the most similar one, or None."""

    def __init__(self, name: str, near: str | None = None, *, server: str) -> None:
        self.name = name
        self.near = near
        self.server = server
        super().__init__(f"server {quoted(server)} has no prompt named {quoted(name)}{_hint(near)}")


class NotSupported(PlaybillError):
    """The server is ready, and has nothing of that kind: resources, prompts, completions or subscriptions.

    Args:
        server: its name.
        what: the kind.
        reason: why it has none here though it may have some: a view leaves the server out; else None.
    """

    def __init__(self, server: str, what: str, reason: str | None = None) -> None:
        self.server = server
        self.what = what
        self.reason = reason
        here = "" if reason is None else f" here: {one_line(reason)}"
        super().__init__(f"server {quoted(server)} has no {what}{here}")


class RequestRefused(PlaybillError):
    """The server answered with an error, or with what is no answer.

    Args:
        server: its name.
        what: what was asked for, such as ``resource 'note://1'``.
        reason: what it says.
        code: of JSON-RPC, or None.
        near: the URI or name that was perhaps meant, or None.
    """

    def __init__(self, server: str, what: str, reason: str, code: int | None = None, near: str | None = None) -> None:
        self.server = server
        self.what = what
        self.reason = reason
        self.code = code
        self.near = near
        super().__init__(f"server {quoted(server)} does not give {what}: {one_line(reason)}{_hint(near)}")


class ToolNotOffered(PlaybillError):
    """The tool is known, but not offered now: excluded, quarantined, over the budget, or withdrawn."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"tool {quoted(name)} is not offered: {one_line(reason)}")


class ServerUnavailable(PlaybillError):
    """The server cannot take the call now; nothing of the call reached it, or it ended in an orderly stop."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"server {quoted(name)} is unavailable: {one_line(reason)}")


class ServerDied(PlaybillError):
    """The connection was lost while the call was in flight: whether it took effect is unknown."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"server {quoted(name)} died during the call: {one_line(reason)}")


class CallTimeout(PlaybillError):
    """The call did not end by its deadline; the server was told to cancel it. ``what`` says what was called."""

    def __init__(self, name: str, seconds: float, what: str = "tool") -> None:
        self.name = name
        self.seconds = seconds
        self.what = what
        super().__init__(f"{what} {quoted(name)} did not answer within {seconds:.3g} s")


class OperationTimeout(PlaybillError):
    """An operation's effect was not seen by its deadline.

    Args:
        operation: its name.
        seconds: the deadline that passed.
        applied: True when it is applied but not yet published, None when that is unknown.
    """

    def __init__(self, operation: str, seconds: float, applied: bool | None) -> None:
        self.operation = operation
        self.seconds = seconds
        self.applied = applied
        state = {
            True: "it was applied, but is not published",
            False: "it was not applied",
            None: "it may be applied yet",
        }
        super().__init__(f"{operation} did not finish within {seconds:g} s: {state[applied]}")


class LoginFailed(PlaybillError):
    """There is no login at a server, for the reason that is given; what was kept of one before is as it was."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"server {quoted(name)} is not logged in to: {one_line(reason)}")


class ProfileMismatch(PlaybillError):
    """A provider would refuse a catalog that was made for another profile.

    Args:
        message: what it would refuse, and what to do, in one line.
        provider: what it was to be sent to.
        profile: the name of the profile to open the host, or a view, with.
        flaws: each tool that would be refused, by wire name, with the reason.
    """

    def __init__(
        self, message: str, *, provider: str = "", profile: str = "", flaws: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.provider = provider
        self.profile = profile
        self.flaws = flaws
        super().__init__(message)


class HostClosed(PlaybillError):
    """The host is closed, or closing."""

    def __init__(self, message: str = "the host is closed") -> None:
        super().__init__(message)
