"""What is written under ``oauth`` of an entry, in the spellings of the hosts people come from, as an `OAuth` value and back.

``oauth: false`` is a server without OAuth, whatever it answers; ``true`` and ``{}`` say nothing. ``auth`` with a ``CLIENT_ID``
in it is the same in the writing of another host. What is not read is kept, and warned about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...model.config import ServerEntry
from ...model.nearest import nearest
from ...model.oauth import OAuth
from .keys import Problem, kind_of, url_wrong

__all__ = ["OAUTH_KEYS", "SIGNING", "is_loopback", "oauth_json", "read_oauth", "secure_wrong"]

OAUTH_KEYS: Mapping[str, str] = {
    "enabled": "enabled",
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "privateKey": "private_key",
    "signingAlgorithm": "signing_algorithm",
    "clientMetadataUrl": "client_metadata_url",
    "scopes": "scopes",
    "callbackPort": "callback_port",
    "redirectUri": "redirect_uri",
    "issuer": "issuer",
    "authServerMetadataUrl": "metadata_url",
    "grantType": "grant",
}
"""Our spelling of a key → the field of `OAuth` that it becomes."""

SIGNING = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""What a client can sign with: never a shared secret, and never nothing."""

_OTHERS = {
    "client_id": "clientId",
    "CLIENT_ID": "clientId",
    "client_secret": "clientSecret",
    "CLIENT_SECRET": "clientSecret",
    "private_key": "privateKey",
    "signing_algorithm": "signingAlgorithm",
    "scope": "scopes",
    "callback_port": "callbackPort",
    "redirect_uri": "redirectUri",
    "grant_type": "grantType",
}
_INSTEAD = "not read: the authorization server's metadata says where (authServerMetadataUrl names it)"
_ENDPOINTS = ("authorizationUrl", "tokenUrl", "registrationUrl", "authorization_url", "token_url")
_URLS = ("issuer", "authServerMetadataUrl", "clientMetadataUrl")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine itself."""
    try:
        return urlsplit(url).hostname in _LOOPBACK
    except ValueError:
        return False


def read_oauth(value: Any, key: str = "oauth") -> tuple[OAuth | None, list[Problem], list[Problem]]:
    """Read what is written.

    Args:
        value: its JSON value; None for none.
        key: where it is written in its entry.

    Returns:
        What it means, or None; what is wrong with it; and what of it is not read.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    if value is None or value is True:
        return None, problems, warnings
    if value is False:
        return OAuth(enabled=False), problems, warnings
    if not isinstance(value, dict):
        warnings.append(Problem((key,), f"not read: expected an object, true or false, found {kind_of(value)}"))
        return None, problems, warnings
    found: dict[str, Any] = {}
    for name, each in value.items():
        ours: str = _OTHERS.get(str(name), str(name))
        if each is None or each == "" or name.startswith(("_", "$", "x-")):
            continue
        if ours not in OAUTH_KEYS:
            near = nearest(name, OAUTH_KEYS)
            hint = f" (did you mean {near!r}?)" if near else ""
            warnings.append(Problem((key, name), _INSTEAD if name in _ENDPOINTS else f"unknown key{hint}"))
        elif (wrong := _wrong(ours, each)) is not None:
            problems.append(Problem((key, name), wrong))
        else:
            found.setdefault(OAUTH_KEYS[ours], tuple(each) if isinstance(each, list) else each)
    if problems:
        return None, problems, warnings
    try:
        settings = OAuth(**found)
    except TypeError:
        problems.append(Problem((key,), _lacks(found)))
        return None, problems, warnings
    return (None if settings == OAuth() else settings), problems, warnings


def _lacks(found: Mapping[str, Any]) -> str:
    """Why what is written is no login, though each part of it could be."""
    if "client_secret" in found and "private_key" in found:
        return "a client has a clientSecret or a privateKey, not both"
    lacks = [] if "client_id" in found else ["clientId"]
    if "private_key" not in found:
        lacks += [] if "client_secret" in found else ["clientSecret (or privateKey)"]
        return f"the grant client_credentials needs {' and '.join(lacks)}"
    return "a privateKey needs its clientId"


def _wrong(key: str, value: Any) -> str | None:
    """What is wrong with the value of a key, or None."""
    if key == "enabled":
        return None if type(value) is bool else f"expected true or false, found {kind_of(value)}"
    if key == "callbackPort":
        fits = type(value) is int and 0 < value < 65536
        return None if fits else f"expected a port, a whole number from 1 to 65535, found {kind_of(value)}"
    if key == "scopes" and isinstance(value, list):
        odd = next((each for each in value if type(each) is not str or not each.strip()), None)
        return None if odd is None else f"expected strings in this list, found {kind_of(odd)}"
    if type(value) is not str:
        return f"expected a string, found {kind_of(value)}"
    lines = value.splitlines() if key == "privateKey" else [value]
    if not all(map(str.isprintable, lines)):
        return "expected a string, found a character in it that cannot be passed on"
    if key == "signingAlgorithm" and value not in SIGNING:
        return f"expected one of {', '.join(SIGNING)}, found {value!r}"
    if key == "grantType" and value not in ("authorization_code", "client_credentials"):
        return f"expected authorization_code or client_credentials, found {value!r}"
    if "${" in value:
        return None
    if key in _URLS:
        return url_wrong(value) or secure_wrong(value)
    if key == "redirectUri" and (url_wrong(value) or not value.startswith("http://") or not is_loopback(value)):
        return "expected a URL on this machine: http://127.0.0.1:PORT/… or http://localhost:PORT/…"
    return None


def secure_wrong(url: str) -> str | None:
    """Why a login may not go to a URL, or None: it is neither https nor on this machine."""
    return (
        None if url.lower().startswith("https://") or is_loopback(url) else "expected a URL that begins with https://"
    )


def oauth_json(entry: ServerEntry) -> Any:
    """What is written for an entry; None when nothing is."""
    settings = entry.oauth
    if settings is None:
        return None
    if not settings.enabled:
        return False
    default = OAuth()
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, name in OAUTH_KEYS.items()
        if (value := getattr(settings, name)) != getattr(default, name)
    }
