"""The first login, what is refused on the way, and logging out, at a real authorisation server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from playbill.actors import LoginFailed, OAuth, UnknownServer
from playbill.actors.edge.auth import callback as loopback

from .conftest import PATIENCE, Authority, OnStage, Person, browse_to_redirect, kept, only_file


async def test_a_person_logs_in_and_the_server_is_connected_to_at_once(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    async with on_stage() as stage:
        state = await stage.until("needs_auth")
        assert state.error == "HTTP 401 Unauthorized: it wants a login"
        assert "log in (`playbill login web`)" in str(stage.host.why("web", "echo"))
        person = Person()
        snapshot = await stage.login(open_url=person)
        server = snapshot.model.server("web")
        assert server is not None
        assert server.phase != "needs_auth"
        await stage.until("ready")
        assert await stage.call(n=3) == 3
        assert person.saw == [200]
        assert stage.state().restarts == 0
        stats = authority.stats()
        assert (stats["seen"]["register"], stats["seen"]["authorize"], stats["seen"]["code"]) == (1, 1, 1)
        assert stats["resources"] == [authority.url]
        assert stats["asked_scopes"] == ["use"]
        authority.set(do=["revoke_access"])
        assert await stage.call(n=4) == 4
        # Each token is asked for this one server (RFC 8707).
        grants = ["authorization_code", "refresh_token"]
        assert authority.stats()["asked_tokens"] == [[grant, authority.url] for grant in grants]
    assert kept(folder)["scope"] == "use"
    async with on_stage() as again:
        await again.until("ready")
        assert again.phases.count("needs_auth") == 0
    assert authority.seen("authorize") == 1


async def test_an_embedder_takes_the_answer_at_a_redirect_of_its_own(authority: Authority, on_stage: OnStage) -> None:
    answers: list[str] = []

    async def open_url(url: str) -> None:
        answers.append(await browse_to_redirect(url))

    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login(
            open_url=open_url, wait_for_callback=answers.pop, redirect_uri="https://app.example/after-login"
        )
        await stage.until("ready")
        assert await stage.call(n=1) == 1


async def test_a_redirect_that_nobody_answers_for_is_refused(on_stage: OnStage) -> None:
    async with on_stage() as stage:
        with pytest.raises(ValueError, match="needs a wait_for_callback"):
            await stage.login(redirect_uri="https://app.example/after-login")


async def test_a_url_that_is_pasted_counts_as_the_browser_s_own_answer(authority: Authority, on_stage: OnStage) -> None:
    answers: list[str] = []

    async def open_url(url: str) -> None:
        answers.append(await browse_to_redirect(url))

    async def paste() -> str:
        return answers.pop()

    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login(open_url=open_url, wait_for_callback=paste)
        await stage.until("ready")


async def test_an_answer_with_another_state_is_refused_and_nothing_is_kept(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    authority.set(state="somebody-else-s")
    answers: list[str] = []

    async def open_url(url: str) -> None:
        answers.append(await browse_to_redirect(url))

    async with on_stage() as stage:
        await stage.until("needs_auth")
        with pytest.raises(LoginFailed, match="its state is another one"):
            await stage.login(open_url=open_url, wait_for_callback=lambda: answers[0])
        assert stage.state().phase == "needs_auth"
        assert authority.seen("code") == 0
        assert list(folder.glob("*.json")) == []


async def test_the_open_port_takes_no_other_answer_and_closes_after_its_own(
    authority: Authority, on_stage: OnStage
) -> None:
    seen: dict[str, Any] = {}

    async def open_url(url: str) -> None:
        redirect = await browse_to_redirect(url)
        where = redirect.partition("?")[0]
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            for name, to in (
                ("forged", f"{where}?code=evil&state=guessed"),
                ("path", redirect.replace("/callback", "/other")),
                ("none", where),
            ):
                answer = await client.get(to)
                seen[name] = answer.status_code
                assert "evil" not in answer.text
            seen["post"] = (await client.post(redirect)).status_code
            seen["own"] = (await client.get(redirect)).status_code
        seen["where"] = where

    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login(open_url=open_url)
        where = seen.pop("where")
        assert seen == {"forged": 400, "path": 400, "none": 400, "post": 400, "own": 200}
        assert where.startswith("http://127.0.0.1:")
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get(where)


async def test_the_open_port_is_of_127_0_0_1_alone_and_a_silent_visitor_holds_up_nobody() -> None:
    async with loopback.open_callback() as callback:
        callback.fits = lambda path: "state=s" in path
        port = int(callback.redirect_uri.rpartition(":")[2].partition("/")[0])
        with pytest.raises(OSError, match="failed"):
            await trio.open_tcp_stream("127.0.0.2", port)
        silent = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(3)]
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            assert (await client.get(f"{callback.redirect_uri}?state=s&code=c")).status_code == 200
        with trio.fail_after(PATIENCE):
            assert await callback.wait() == "/callback?state=s&code=c"
        for each in silent:
            await each.aclose()


async def test_nobody_comes_in_time(authority: Authority, on_stage: OnStage) -> None:
    async with on_stage() as stage:
        await stage.until("needs_auth")
        with pytest.raises(LoginFailed, match=r"nobody logged in within 0\.5 s"):
            await stage.host.login("web", open_url=lambda url: None, timeout=0.5)
        assert stage.state().phase == "needs_auth"


async def test_what_a_handler_raises_leaves_as_it_is(authority: Authority, on_stage: OnStage) -> None:
    def no_browser(url: str) -> None:
        raise KeyError("no browser")

    async with on_stage() as stage:
        with pytest.raises(KeyError, match="no browser"):
            await stage.host.login("web", open_url=no_browser)
        with pytest.raises(UnknownServer):
            await stage.host.login("wbe", open_url=no_browser)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"deny": True}, "the authorization server says no: access_denied"),
        (
            {"iss": "https://evil.example"},
            r"the answer is of another authorization server \(evil\.example\) than was asked",
        ),
        (
            {"metadata": {"authorization_response_iss_parameter_supported": True}},
            "does not say which authorization server",
        ),
        ({"metadata": {"code_challenge_methods_supported": None}}, "does not do PKCE with S256"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "does not do PKCE with S256"),
        ({"metadata": {"issuer": "https://evil.example"}}, "is of another authorization server: https://evil.example"),
        ({"metadata": {"token_endpoint": "http://evil.example/token"}}, "the token endpoint is not gone to"),
        (
            {"metadata": {"authorization_endpoint": "http://evil.example/a"}},
            "the authorization endpoint is not gone to",
        ),
        ({"metadata": {"registration_endpoint": None}}, "registers no clients by itself"),
        ({"metadata": {"token_endpoint": None}}, "publishes no metadata"),
        ({"resource": {"resource": "https://evil.example/mcp"}}, "its metadata is of another resource"),
        ({"resource": {"authorization_servers": ["http://evil.example"]}}, "its authorization server is not asked"),
        ({"token_status": 400}, "gives no token: server_error"),
        ({"token_status": 503}, "gives no token now: HTTP 503"),
    ],
)
async def test_what_is_wrong_with_a_login_ends_it_with_the_reason(
    authority: Authority, on_stage: OnStage, folder: Path, options: dict[str, Any], why: str
) -> None:
    authority.set(**options)
    answers: list[str] = []

    async def open_url(url: str) -> None:
        answers.append(await browse_to_redirect(url))

    async with on_stage() as stage:
        with pytest.raises(LoginFailed, match=why):
            await stage.login(open_url=open_url, wait_for_callback=lambda: answers[0])
        assert "\n" not in str(stage.state().error)
        assert list(folder.glob("*.json")) == []
        assert not any(stats.startswith("access-") for stats in authority.stats()["bearers"])


async def test_the_answer_names_its_authorisation_server_where_that_says_so(
    authority: Authority, on_stage: OnStage
) -> None:
    authority.set(iss=authority.issuer, metadata={"authorization_response_iss_parameter_supported": True})
    async with on_stage() as stage:
        await stage.login()
        await stage.until("ready")


async def test_a_server_of_before_resource_metadata_is_its_own_authorisation_server(
    authority: Authority, on_stage: OnStage
) -> None:
    """The revision 2025-03-26: no metadata of the resource, and none of an authorization server either."""
    authority.set(resource={"resource": None})
    async with on_stage() as stage:
        # There are no such endpoints at this server, so that is as far as it comes.
        with pytest.raises(LoginFailed, match="registers no client"):
            await stage.login()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"headers": {"Authorization": "Bearer mine"}}, "its entry has an Authorization header already"),
        ({"oauth": OAuth(enabled=False)}, "its entry says oauth: false"),
        ({"url": "http://mcp.invalid/mcp"}, "mcp.invalid is not asked over https"),
        ({"url": None, "command": "true"}, "it is no remote server"),
        ({"trusted": False}, "it is not trusted yet"),
    ],
)
async def test_where_there_is_no_login_it_says_so(
    authority: Authority, on_stage: OnStage, entry: dict[str, Any], why: str
) -> None:
    async with on_stage(**{"disabled": True, **entry}) as stage:
        with pytest.raises(LoginFailed, match=why):
            await stage.login()
    assert authority.seen("metadata") == 0


async def test_logging_out_forgets_revokes_and_leaves_the_server_in_want_of_a_login(
    authority: Authority, on_stage: OnStage, folder: Path
) -> None:
    # The SDK's server takes a revocation only with a secret in it.
    authority.set(metadata={"token_endpoint_auth_methods_supported": ["client_secret_post"]})
    async with on_stage() as stage:
        await stage.until("needs_auth")
        await stage.login()
        await stage.until("ready")
        only_file(folder)
        await stage.host.logout("web")
        await stage.until("needs_auth")
        assert list(folder.glob("*")) == []
        assert authority.seen("revoke") == 2
        assert not [each for each in authority.stats()["tokens"] if not each.startswith("static")]
        await stage.login()
        await stage.until("ready")


async def test_a_browser_that_shows_the_page_says_no_word_of_the_answer(
    authority: Authority, on_stage: OnStage
) -> None:
    pages: list[str] = []

    async def open_url(url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True, timeout=PATIENCE, trust_env=False) as client:
            answer = await client.get(url)
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        pages.append(answer.text)

    async with on_stage() as stage:
        await stage.login(open_url=open_url)
    assert "Thank you" in pages[0]
    assert "code" not in pages[0]
