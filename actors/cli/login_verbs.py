"""The verbs of logins, as `verbs` has the others: what each takes, and its help."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from . import completers
from .options import LoginOptions, LogoutOptions

__all__ = ["login", "logout"]

_LOGIN = LoginOptions()
_LOGOUT = LogoutOptions()
_Server = Annotated[str, Parameter(name="NAME", completer=completers.servers, help="The server.")]


def login(
    name: _Server,
    /,
    *,
    browser: Annotated[
        bool, Parameter(show_default=False, help="Whether to open a browser here; without one, a URL is printed.")
    ] = True,
    scopes: Annotated[
        str | None,
        Parameter(help="What to ask for, instead of what the server says it takes: 'files:read files:write'."),
    ] = None,
    options: LoginOptions = _LOGIN,
) -> int:
    """Log in to a remote server (OAuth). The login is kept for every host of yours; one that waits for it goes on.

    Example: playbill login search
    """
    from .logins import log_in

    return log_in(name, browser=browser, scopes=(scopes or "").split(), options=options)


def logout(name: _Server, /, *, options: LogoutOptions = _LOGOUT) -> int:
    """Forget the login at a remote server, and have it revoked there where that is possible.

    Example: playbill logout search
    """
    from .logins import log_out

    return log_out(name, options=options)
