"""What a client signs to show who it is (RFC 7523, 2.2): instead of a secret that is sent, a key that never is.

It is for one authorization server, which is named in it by its issuer, and good for five minutes, once.
"""

from __future__ import annotations

import importlib

import trio

from .refused import LoginRefused

__all__ = ["signed"]

_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SIGNER = "mcp.client.auth.extensions.client_credentials"
_TRIED = ("RS256", "ES256", "ES384", "ES512", "EdDSA")
"""Each fits another kind of key."""


async def signed(client: str, key: str | None, algorithm: str | None, issuer: str | None) -> dict[str, str]:
    """What goes into a request beside ``client_id``.

    Args:
        client: its id.
        key: in PEM.
        algorithm: None: one that fits the key.
        issuer: of the authorization server.

    Raises:
        LoginRefused: there is no such key, it does not fit, or nobody knows the issuer.
    """
    if key is None:
        raise LoginRefused("the client signs with oauth.privateKey, and the entry has none")
    if issuer is None:
        raise LoginRefused("a client that signs needs an authorization server with metadata")
    await trio.to_thread.run_sync(importlib.import_module, _SIGNER)  # brings cryptography
    from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

    for each in (algorithm,) if algorithm is not None else _TRIED:
        how = SignedJWTParameters(issuer=client, subject=client, signing_key=key, signing_algorithm=each)
        try:
            said = await how.create_assertion_provider()(issuer)
        except Exception:  # of many kinds, and some hold words of the key
            continue
        return {"client_assertion": said, "client_assertion_type": _TYPE}
    fits = "is no private key that can be used" if algorithm is None else f"does not fit {algorithm}"
    raise LoginRefused(f"oauth.privateKey {fits}")
