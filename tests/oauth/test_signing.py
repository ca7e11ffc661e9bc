"""A client that signs instead of sending a secret (``private_key_jwt``, RFC 7523)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from playbill.actors import OAuth

from .conftest import Authority, OnStage, kept

SIGNER = "signing-client"


def new_key(make: Callable[[], Any]) -> tuple[str, str]:
    """A private key and its public one, in PEM."""
    key = make()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


MAKE: dict[str, Callable[[], Any]] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def oauth(authority: Authority, key: str, **more: Any) -> OAuth:
    return OAuth(grant="client_credentials", client_id=SIGNER, private_key=key, issuer=authority.issuer, **more)


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("rsa", None), ("rsa", "RS512"), ("p256", None), ("p384", None), ("ed25519", None)]
)
async def test_a_client_signs_anew_for_each_token_and_its_key_is_sent_and_kept_nowhere(
    authority: Authority, on_stage: OnStage, folder: Path, tmp_path: Path, kind: str, algorithm: str | None
) -> None:
    private, public = new_key(MAKE[kind])
    (tmp_path / "key.pem").write_text(private)
    authority.set(public_key=public)
    settings = oauth(authority, "key.pem", signing_algorithm=algorithm)
    async with on_stage(oauth=settings, source=str(tmp_path / "mcp.json")) as stage:
        await stage.until("ready")
        assert await stage.call(n=1) == 1
        authority.set(do=["revoke_access"])
        async with trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(lambda n=n: stage.call(n=n))
        stats = authority.stats()
        assert [each["grant"] for each in stats["assertions"]] == ["client_credentials"] * 2
        assert stats["resources"] == [authority.url]
        said = repr(stage.host.snapshot())
        assert stage.phases.count("needs_auth") == 0
    lines = private.splitlines()[1:-1]
    assert not any(line in said + str(kept(folder)) for line in lines)
    assert not any(each["raw"] in said + str(kept(folder)) for each in stats["assertions"])


@pytest.mark.parametrize(
    ("algorithm", "key", "why"),
    [
        (None, None, "gives no token: invalid_client"),
        ("RS256", None, "oauth.privateKey does not fit RS256"),
        (None, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "is no private key that can be used"),
    ],
)
async def test_a_key_that_is_not_the_one_is_told_once(
    authority: Authority, on_stage: OnStage, algorithm: str | None, key: str | None, why: str
) -> None:
    other, public = new_key(MAKE["p256"])[0], new_key(MAKE["p256"])[1]
    authority.set(public_key=public)
    async with on_stage(oauth=oauth(authority, key or other, signing_algorithm=algorithm)) as stage:
        state = await stage.until("needs_auth")
        assert str(state.error).endswith(why)
        assert not await stage.host.ready(timeout=0.3)
        assert authority.seen("token") <= 1
        assert authority.stats()["assertions"] == []


async def test_a_person_s_login_is_signed_for_by_the_client_and_so_is_each_refresh(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    private, public = new_key(MAKE["p256"])
    authority.set(public_key=public)
    settings = OAuth(client_id=SIGNER, private_key=private, callback_port=38199)
    async with on_stage(oauth=settings) as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_access"])
        assert await stage.call(n=1) == 1
        grants = [each["grant"] for each in authority.stats()["assertions"]]
        assert grants == ["authorization_code", "refresh_token"]
    assert not any(line in str(kept(folder)) for line in private.splitlines()[1:-1])
