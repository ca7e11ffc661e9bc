"""Stands in for the requests to an authorization server: what is at each path is said at once, without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
from playbill.actors.edge.auth.web import Answer, Web

ISSUER = "https://auth.example"
SERVER = "https://mcp.example/mcp"


class Said(Web):
    """As `Web`.

    Args:
        answers: of each path: a status and a body, of which each request takes the next; the last one stays.

    Attributes:
        asked: path and form, or JSON, of each request.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers = {f"/{name}": list(each) if isinstance(each, list) else [each] for name, each in answers.items()}
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def send(self, method: str, url: str, headers: Mapping[str, str], most: int = 1, **body: Any) -> Answer:
        path = urlsplit(url).path
        self.asked.append((path, body.get("data") or body.get("json") or {}))
        queue = self.answers.get(path) or [(404, b"")]
        status, said = queue.pop(0) if len(queue) > 1 else queue[0]
        return Answer(status, httpx2.Headers(), said if isinstance(said, bytes) else json.dumps(said).encode())


def metadata(**more: Any) -> dict[str, Any]:
    """Of the authorization server, with the endpoints ``/authorize``, ``/token`` and ``/register``."""
    return {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "code_challenge_methods_supported": ["S256"],
        **more,
    }
