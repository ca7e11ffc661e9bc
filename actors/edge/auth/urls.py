"""Which URLs a login may go to: pure.

Everything that carries a code, a secret or a token goes over https, or to this machine when the server itself is on it. A
server elsewhere cannot lead us to what listens here.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit, urlunsplit

from ..config.oauth_keys import is_loopback

__all__ = ["bare", "base_of", "canonical", "origin", "refusal", "resource_of", "shown"]

_PORTS = {"http": 80, "https": 443}


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL, in lower case, with the port that a scheme has by default.

    Raises:
        ValueError: it is no URL with a host.
    """
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), parts.hostname
    if scheme not in _PORTS or not host:
        raise ValueError("no http URL with a host")
    return scheme, host.lower(), parts.port or _PORTS[scheme]


def refusal(url: str, server: str) -> str | None:
    """Why a URL that a server or its authorization server named is not gone to, in one line; None when it may be.

    Args:
        url: which.
        server: URL of the MCP server.
    """
    try:
        scheme, host, _ = origin(url)
        parts = urlsplit(url)
    except ValueError:
        return "it is no URL"
    if parts.username is not None or parts.password is not None:
        return f"a URL at {host} holds a user name"
    if parts.fragment:
        return f"a URL at {host} has a fragment"
    if _is_here(host) and not _is_here(urlsplit(server).hostname or ""):
        return f"{host} is this machine, and the server is not"
    if is_loopback(url) and is_loopback(server):
        return None
    return None if scheme == "https" else f"{host} is not asked over https: write https://"


def bare(url: str) -> str:
    """A URL without what may be a secret: user, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower(), parts.path, "", ""))


def base_of(url: str) -> str:
    """The origin of a URL as a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2].lower()}"


def canonical(url: str) -> str:
    """A URL as it is compared: scheme and host in lower case, no default port, no fragment, a path."""
    parts = urlsplit(url)
    scheme, host, port = origin(url)
    host = f"[{host}]" if ":" in host else host
    at = "" if port == _PORTS[scheme] else f":{port}"
    return urlunsplit((scheme, host + at, parts.path or "/", parts.query, ""))


def resource_of(url: str) -> str:
    """The resource indicator of a server (RFC 8707, 2: no fragment, and better no query), as `canonical` but for the path."""
    parts = urlsplit(canonical(url))
    return urlunsplit((parts.scheme, parts.netloc, urlsplit(url).path, "", ""))


def _is_here(host: str) -> bool:
    """Whether a name or an address is of this machine, in all the ways to write that: 127.1, 0x7f000001, ::ffff:127.0.0.1."""
    name = host.rstrip(".").partition("%")[0]
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, 6.3
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(name))
        except (OSError, ValueError):
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def shown(url: str) -> str:
    """Host and port of a URL, for a person."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "the server"
    except ValueError:
        return "the server"
