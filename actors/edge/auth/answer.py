"""What an authorization server answers through the browser: the redirect, judged. Pure.

The answer is believed only with the state of this very login (RFC 6749, 10.12), and only from the authorization server that was
asked (``iss``, RFC 9207): else a code that somebody else got, or got elsewhere, would be taken for ours.
"""

from __future__ import annotations

import secrets
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen

from .refused import LoginRefused
from .urls import shown

__all__ = ["Asked", "code_in", "has_state", "says_no"]

_LONGEST = 16 * 1024


@frozen
class Asked:
    """What the answer must fit.

    Args:
        state: of this login.
        issuer: that was asked, or None when it has no metadata.
        says_issuer: it says that its answers name it.
        plain: a person may give the code alone: it is known to check the proof that it is ours (PKCE).
    """

    state: str = field(repr=False)
    issuer: str | None
    says_issuer: bool
    plain: bool = False


def _parameters(text: str) -> dict[str, list[str]]:
    text = text.strip()[:_LONGEST]
    query = urlsplit(text).query if "://" in text or text.startswith("/") else text.removeprefix("?")
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


def has_state(text: str, state: str) -> bool:
    """Whether an answer is of a login.

    Args:
        text: a URL, the path of one, or its query.
        state: of the login.
    """
    try:
        said = _parameters(text).get("state", [])
    except ValueError:
        return False
    return len(said) == 1 and secrets.compare_digest(said[0].encode("utf-8", "replace"), state.encode())


def says_no(text: str) -> bool:
    """Whether an answer is an error. The text is as in `has_state`."""
    try:
        return "error" in _parameters(text)
    except ValueError:
        return False


def code_in(text: str, asked: Asked) -> str:
    """The code of an answer.

    Args:
        text: the whole redirect as a URL, its path, or its query; or the code alone.
        asked: what it must fit.

    Raises:
        LoginRefused: it does not fit, or says no.
    """
    plain = text.strip()
    if asked.plain and plain and not any(each in plain for each in ("://", "?", "&", "code=", "state=", "error=", " ")):
        return plain
    try:
        said = _parameters(text)
    except ValueError:
        raise LoginRefused("the answer is no URL") from None
    if not has_state(text, asked.state):
        missing = "" if "state" in said else "; give the whole URL that the browser was sent to"
        raise LoginRefused(f"the answer is not of this login: its state is another one{missing}")
    issuers = said.get("iss", [])
    if asked.says_issuer and not issuers:
        raise LoginRefused("the answer does not say which authorization server it is of")
    if issuers and issuers != [asked.issuer]:
        other = shown(issuers[0])
        named = f" ({other})" if other.isascii() and other.isprintable() and len(other) <= 100 else ""
        raise LoginRefused(f"the answer is of another authorization server{named} than was asked: log in anew")
    if "error" in said:
        error = said["error"][0]
        known = error.isascii() and error.replace("_", "").isalnum() and len(error) <= 60
        raise LoginRefused(f"the authorization server says no: {error if known else 'an error'}")
    codes = said.get("code", [])
    if len(codes) != 1 or not codes[0]:
        raise LoginRefused("the answer holds no code")
    return codes[0]
