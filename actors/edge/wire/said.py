"""What an error that a server answers with says to people and models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_types import INVALID_REQUEST

from ...model.protocol import MODERN, NEWEST_OLDER
from .asked import QUESTIONS, told_question
from .remote.failures import HttpFailed

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

    from ...ports import Era

__all__ = ["later", "remedy", "said"]

_NO_WAY_TO_ASK = re.compile(r"back[- ]?channel|server[- ]initiated request", re.IGNORECASE).search


def said(error: MCPError) -> str:
    """What a JSON-RPC error says."""
    if isinstance(error, HttpFailed):
        return error.reason
    text = f"{error.message} (error {error.code})"
    if error.data not in (None, "", {}, []):
        text += f": {str(error.data)[:1000]}"
    return text


def later(error: MCPError) -> float | None:
    """After how many seconds a refusal asks to be tried again; None when it does not say."""
    return error.meaning.retry_after if isinstance(error, HttpFailed) and error.meaning is not None else None


def remedy(error: MCPError, era: Era) -> str:
    """What can be done when a server wanted to ask something by itself, which nothing carries in the modern era.

    The words are those of the SDK's ``NoBackChannelError``, which has no code of its own. The question is logged as others are.

    Returns:
        A sentence, with the full stop before it; empty when that is not what the error says.
    """
    if era != "modern" or error.code != INVALID_REQUEST or _NO_WAY_TO_ASK(error.message) is None:
        return ""
    method = next((each for each in QUESTIONS if each in error.message), None)
    if method is not None:
        told_question(method)
    whom = "the program" if method is None else f"the {QUESTIONS[method]} handler"
    return (
        f". What it wanted to ask {whom} cannot come this way in protocol {MODERN}:"
        f' set "protocolVersion": "{NEWEST_OLDER}" in its entry.'
    )
