"""What becomes of a request that HTTP itself failed, for whoever asked."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from .meaning import Meaning

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpFailed", "not_followed", "words_of"]


class HttpFailed(MCPError):
    """A request got no JSON-RPC answer, for a reason that its message says in one line.

    Args:
        reason: that line.
        meaning: of the status that it was refused with, or None.
    """

    def __init__(self, reason: str, meaning: Meaning | None = None) -> None:
        super().__init__(code=INTERNAL_ERROR, message=reason)
        self.reason = reason
        self.meaning = meaning


def not_followed(response: httpx2.Response, elsewhere: str) -> HttpFailed:
    """The failure of a request that was redirected.

    Args:
        response: the redirect.
        elsewhere: where it leads, as it may be shown.
    """
    return HttpFailed(f"HTTP {response.status_code}: not followed to {elsewhere}; if that is it, use its URL")


def words_of(error: httpx2.RequestError | httpx2.InvalidURL, url: str) -> str:
    """A network error in one line; of the URL only host and port, as the rest may hold a secret."""
    try:
        where = urlsplit(url).netloc.rpartition("@")[2] or "the server"
    except ValueError:
        where = "the server"
    if (words := getattr(error, "in_words", None)) is not None:  # of a login: it says all
        return str(words)
    kind = type(error).__name__
    cause: BaseException | None = error
    while cause is not None and not str(cause).strip():  # some say nothing, and what they come of does
        cause = cause.__cause__ or cause.__context__
    said = "" if cause is None else f": {' '.join(str(cause).split())}"
    return f"the request to {where} failed: {kind}{said}"
