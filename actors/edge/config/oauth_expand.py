"""The ``oauth`` of an entry with its variables put in, and its private key read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from ...model.oauth import OAuth
from .regular import read_regular

__all__ = ["PEM", "KeyUnread", "expand_oauth"]

_KEYS: Mapping[str, str] = {
    "client_id": "clientId",
    "client_secret": "clientSecret",
    "private_key": "privateKey",
    "client_metadata_url": "clientMetadataUrl",
    "redirect_uri": "redirectUri",
    "issuer": "issuer",
    "metadata_url": "authServerMetadataUrl",
}
PEM = "-----BEGIN "
"""How a key begins that is written as it is, and is no path."""

_SHORTEST_SECRET = 4


class KeyUnread(Exception):
    """The file of a private key cannot be used; the message is one line without the path.

    Args:
        file: its path.
    """

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        super().__init__(reason)


def expand_oauth(settings: OAuth, expand: Callable[[str, str], str], base: Path) -> tuple[OAuth, set[str]]:
    """Expanded; and what of it must not be shown, however it was written.

    Args:
        settings: as written.
        expand: of a text and its path in the entry: the text expanded.
        base: the folder that the path of a key starts from.

    Raises:
        KeyUnread: there is no private key in that file.
        ExpandError: what ``expand`` raises.
    """
    found: dict[str, Any] = {
        name: expand(value, f"oauth.{key}") for name, key in _KEYS.items() if (value := getattr(settings, name))
    }
    if (key := found.get("private_key")) is not None:
        found["private_key"] = _key_of(key, base)
    scopes = tuple(expand(each, f"oauth.scopes[{i}]") for i, each in enumerate(settings.scopes))
    secrets = {each for each in [found.get("client_secret", "")] if len(each) >= _SHORTEST_SECRET}
    # In one line of an error there is at most one line of a key.
    secrets |= {each for each in found.get("private_key", "").splitlines() if each and not each.startswith("-----")}
    return evolve(settings, scopes=scopes, **found), secrets


def _key_of(value: str, base: Path) -> str:
    if value.lstrip().startswith(PEM):
        return value
    file = base / value
    try:
        text = read_regular(file).decode("ascii")
    except OSError as error:
        raise KeyUnread(str(file), f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        text = ""
    if not text.lstrip().startswith(PEM):
        raise KeyUnread(str(file), f"holds no private key: it does not begin with {PEM.strip()}")
    return text
