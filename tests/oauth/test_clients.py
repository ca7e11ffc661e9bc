"""Who we are at an authorisation server, and what we may do: registered clients, documents, credentials, scopes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from playbill.actors import LoginFailed, OAuth

from .conftest import PATIENCE, STATIC, STATIC_SECRET, Authority, OnStage, Person, free_port, kept

DOCUMENT = "https://client.example/playbill.json"
CREDENTIALS = OAuth(grant="client_credentials", client_id=STATIC, client_secret=STATIC_SECRET)


async def test_a_client_of_the_config_registers_nothing_and_its_secret_is_not_kept(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    oauth = OAuth(client_id=STATIC, client_secret=STATIC_SECRET, callback_port=38199)
    async with on_stage(oauth=oauth) as stage:
        await stage.until("needs_auth")
        person = Person()
        await stage.login(open_url=person)
        await stage.until("ready")
        assert "redirect_uri=http%3A%2F%2Flocalhost%3A38199%2Fcallback" in person.urls[0]
        authority.set(do=["revoke_access"])
        assert await stage.call(n=1) == 1
        seen = authority.stats()["seen"]
        assert (seen.get("register", 0), seen["refresh"]) == (0, 1)
    assert STATIC_SECRET not in str(kept(folder))


async def test_a_port_that_is_taken_is_told(authority: Authority, on_stage: OnStage) -> None:
    port = free_port()
    (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    async with listener, on_stage(oauth=OAuth(client_id=STATIC, redirect_uri=f"http://127.0.0.1:{port}/x")) as stage:
        with pytest.raises(LoginFailed, match=f"port {port} cannot be listened on"):
            await stage.login()


async def test_a_document_is_used_where_documents_are_read(authority: Authority, on_stage: OnStage) -> None:
    authority.set(metadata={"client_id_metadata_document_supported": True})
    async with on_stage(oauth=OAuth(client_metadata_url=DOCUMENT)) as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
    seen = authority.stats()["seen"]
    assert seen["document"] > 0
    assert seen.get("register", 0) == 0


async def test_where_no_documents_are_read_it_registers_itself(authority: Authority, on_stage: OnStage) -> None:
    async with on_stage(oauth=OAuth(client_metadata_url=DOCUMENT)) as stage:
        await stage.login()
        await stage.until("ready")
    assert authority.seen("register") == 1


async def test_it_registers_once_for_many_logins_and_anew_when_it_is_forgotten(
    authority: Authority, on_stage: OnStage
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        for _ in range(2):
            await stage.login()
            await stage.until("ready")
            authority.set(do=["revoke_all"])
            await stage.host.restart("web")
            await stage.until("needs_auth")
        assert authority.seen("register") == 1
        await stage.login()
        await stage.until("ready")
        authority.set(do=["revoke_access", "forget_clients"])
        await stage.host.restart("web")
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        assert authority.seen("register") == 2


async def test_client_credentials_need_nobody(authority: Authority, on_stage: OnStage, folder: Path) -> None:
    oauth = OAuth(grant="client_credentials", client_id=STATIC, client_secret=STATIC_SECRET, issuer=authority.issuer)
    async with on_stage(oauth=oauth) as stage:
        await stage.until("ready")
        assert await stage.call(n=1) == 1
        authority.set(do=["revoke_access"])
        async with trio.open_nursery() as nursery:
            for n in range(20):
                nursery.start_soon(lambda n=n: stage.call(n=n))
        seen = authority.stats()["seen"]
        assert (seen["credentials"], seen.get("authorize", 0)) == (2, 0)
        assert authority.stats()["resources"] == [authority.url]
        assert stage.phases.count("needs_auth") == 0
        assert await stage.call("admin") == "done"
        assert authority.seen("credentials") == 3
    assert kept(folder)["scope"] == "use admin"
    assert STATIC_SECRET not in str(kept(folder))


async def test_credentials_go_to_no_authorisation_server_that_the_config_does_not_name(
    authority: Authority, on_stage: OnStage
) -> None:
    async with on_stage(oauth=CREDENTIALS) as stage:
        state = await stage.until("needs_auth")
        assert "write oauth.issuer, if it is " + authority.issuer in str(state.error)
    assert authority.seen("token") == 0


async def test_credentials_that_are_wrong_are_told_and_not_tried_again_and_again(
    authority: Authority, on_stage: OnStage
) -> None:
    oauth = OAuth(grant="client_credentials", client_id=STATIC, client_secret="wrong-4712", issuer=authority.issuer)
    async with on_stage(oauth=oauth) as stage:
        state = await stage.until("needs_auth")
        assert str(state.error).endswith("gives no token: invalid_client")
        assert not await stage.host.ready(timeout=0.3)
        assert authority.seen("credentials") == 1


async def test_a_tool_that_takes_more_scope_costs_its_call_alone_and_a_login_brings_it(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        with pytest.raises(AssertionError, match=r"the login is not enough \(it lacks admin\): log in again"):
            await stage.call("admin")
        assert stage.state().phase == "ready"
        assert kept(folder)["wanted"] == "admin"
        assert await stage.call(n=1) == 1
        authority.set(scopes=None)
        await stage.login()
        with trio.fail_after(PATIENCE):
            assert await stage.call("admin") == "done"
        assert authority.stats()["asked_scopes"] == ["use", "use admin"]
        assert stage.phases.count("needs_auth") == 1
    assert (kept(folder)["scope"], kept(folder)["wanted"]) == ("use admin", None)


async def test_a_login_without_the_scope_that_the_server_takes_is_told(authority: Authority, on_stage: OnStage) -> None:
    authority.set(scopes=[])
    async with on_stage(oauth=OAuth(scopes=("admin",))) as stage:
        await stage.until("needs_auth")
        await stage.login()
        state = await stage.until_that(lambda state: state.phase == "needs_auth" and "403" in str(state.error))
        assert str(state.error).startswith("HTTP 403 Forbidden: the login is not enough")
        assert authority.stats()["asked_scopes"] == ["admin"]


async def test_the_scopes_of_the_caller_count_before_those_of_the_server(
    authority: Authority, on_stage: OnStage
) -> None:
    authority.set(scopes=None)
    async with on_stage() as stage:
        await stage.login(scopes=["use", "admin"])
        await stage.until("ready")
        assert authority.stats()["asked_scopes"] == ["use admin"]
        with pytest.raises(TypeError, match="not the one string"):
            await stage.login(scopes="use admin")


@pytest.mark.parametrize("options", [{"openid": True}, {"challenge": False}])
async def test_what_is_not_said_is_looked_for_where_it_has_to_be(
    authority: Authority, on_stage: OnStage, options: dict[str, bool]
) -> None:
    authority.set(**options)
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        assert authority.stats()["asked_scopes"] == ["use"]


async def test_the_metadata_is_where_the_config_says(authority: Authority, on_stage: OnStage) -> None:
    authority.set(resource={"authorization_servers": ["https://gone.invalid"]})
    url = f"{authority.issuer}/.well-known/oauth-authorization-server"
    async with on_stage(oauth=OAuth(metadata_url=url)) as stage:
        await stage.login()
        await stage.until("ready")


async def test_an_authorisation_server_that_the_config_does_not_name_is_not_used(
    authority: Authority, on_stage: OnStage
) -> None:
    async with on_stage(oauth=OAuth(issuer="https://auth.invalid")) as stage:
        with pytest.raises(LoginFailed, match=r"auth\.invalid"):
            await stage.login()
    assert authority.seen("register") == 0
