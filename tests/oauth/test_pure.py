"""What is decided without any request: challenges, URLs, answers, what is done with a login, what a config says of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.edge.auth.answer import Asked, code_in, has_state
from playbill.actors.edge.auth.challenge import Challenge, read_challenge
from playbill.actors.edge.auth.record import (
    Client,
    Record,
    decide,
    key_of,
    read_record,
    record_json,
    union,
    with_tokens,
)
from playbill.actors.edge.auth.refused import LoginRefused
from playbill.actors.edge.auth.urls import canonical, origin, refusal, resource_of
from playbill.actors.edge.config.entry import entry_json, read_entry
from playbill.actors.edge.config.expand import ExpandError, expand
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.oauth import OAuth

TOKEN, OTHER = "tok-a", "tok-b"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], Challenge()),
        (["Bearer"], Challenge()),
        (['Basic realm="a, Bearer scope=b"'], Challenge()),
        (
            ['Bearer error="invalid_token", resource_metadata="https://a/b?c=d"'],
            Challenge("https://a/b?c=d", None, "invalid_token"),
        ),
        (["bearer scope=files, error=insufficient_scope"], Challenge(None, "files", "insufficient_scope")),
        (['Basic realm="x", Bearer scope="a b"'], Challenge(None, "a b", None)),
        (['Bearer scope="a b", Basic realm="x", scope="c"'], Challenge(None, "a b", None)),
        (['Basic realm="x"', 'Bearer realm="say \\"hi\\"", scope="a"'], Challenge(None, "a", None)),
        (['Bearer scope="a", scope="b"'], Challenge(None, "a", None)),
        (['Bearer scope="never ends'], Challenge()),
        (["Bearer " + 'x="' * 50_000], Challenge()),
    ],
)
def test_a_challenge_is_read_as_its_grammar_says(values: list[str], found: Challenge) -> None:
    assert read_challenge(values) == found


@pytest.mark.parametrize(
    ("url", "server", "fits"),
    [
        ("https://auth.example/token", "https://mcp.example/mcp", True),
        ("http://auth.example/token", "https://mcp.example/mcp", False),
        ("http://127.0.0.1:9200/", "https://mcp.example/mcp", False),
        ("https://localhost/", "https://mcp.example/mcp", False),
        ("http://[::1]:80/", "https://mcp.example/mcp", False),
        ("http://127.0.0.1:9200/", "http://localhost:8000/mcp", True),
        ("https://auth.example/token#x", "https://mcp.example/mcp", False),
        ("https://me:pass@auth.example/", "https://mcp.example/mcp", False),
        ("javascript:alert(1)", "https://mcp.example/mcp", False),
        ("file:///etc/passwd", "https://mcp.example/mcp", False),
        ("https://", "https://mcp.example/mcp", False),
        ("https://[::1", "https://mcp.example/mcp", False),
        ("http://mcp.example/x", "http://mcp.example/mcp", False),
    ],
)
def test_a_login_goes_over_https_or_stays_on_this_machine(url: str, server: str, fits: bool) -> None:
    assert (refusal(url, server) is None) == fits


def test_urls_are_compared_as_what_they_mean_and_told_without_secrets() -> None:
    assert canonical("HTTPS://Example.com:443/a?k=1#x") == "https://example.com/a?k=1"
    assert origin("https://EXAMPLE.com/a") == origin("https://example.com:443/b") != origin("http://example.com:443/")
    assert resource_of("https://me:pw@Example.com/mcp?key=secret#x") == "https://example.com/mcp"


ASKED = Asked("the-state", "https://auth.example", False)
SAYS = Asked("the-state", "https://auth.example", True)
PLAIN = Asked("the-state", "https://auth.example", False, True)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("http://127.0.0.1:1/callback?code=c%2B1&state=the-state", ASKED),
        ("/callback?state=the-state&code=c%2B1", ASKED),
        ("code=c%2B1&state=the-state&iss=https%3A%2F%2Fauth.example", SAYS),
        ("  c+1\n", PLAIN),
    ],
)
def test_the_answer_of_this_very_login_holds_a_code(text: str, asked: Asked) -> None:
    assert code_in(text, asked) == "c+1"


@pytest.mark.parametrize(
    ("text", "asked", "why"),
    [
        ("/callback?code=c&state=other", ASKED, "its state is another one"),
        ("/callback?code=c", ASKED, "its state is another one; give the whole URL"),
        ("/callback?code=c&state=the-state&state=other", ASKED, "its state is another one"),
        ("c+1", ASKED, "its state is another one; give the whole URL"),
        ("/callback?code=c&state=the-state", SAYS, "does not say which authorization server"),
        ("/callback?code=c&state=the-state&iss=https://evil.example", ASKED, "of another authorization server"),
        ("/callback?code=c&state=the-state&iss=https://auth.example&iss=https://evil.example", SAYS, "of another"),
        ("/callback?error=access_denied&state=the-state", ASKED, "says no: access_denied"),
        ("/callback?error=%1b[31mno&state=the-state", ASKED, "says no: an error"),
        ("/callback?state=the-state", ASKED, "holds no code"),
        ("/callback?code=a&code=b&state=the-state", ASKED, "holds no code"),
        ("http://[::1", ASKED, "no URL"),
    ],
)
def test_any_other_answer_is_refused(text: str, asked: Asked, why: str) -> None:
    with pytest.raises(LoginRefused, match=why.replace("[", r"\[")):
        code_in(text, asked)


def test_a_state_is_there_once_or_it_is_none() -> None:
    assert has_state("/callback?state=s", "s")
    assert not has_state("/callback?state=s&state=s", "s")
    assert not has_state("/callback?state=é", "s")
    assert "the-state" not in repr(ASKED)


KEPT = Record(
    access_token=TOKEN, refresh_token="r", token_endpoint="https://a/token", issued_at=1000.0, expires_at=2000.0
)
NO_REFRESH = Record(access_token=TOKEN, issued_at=1000.0, expires_at=2000.0)


@pytest.mark.parametrize(
    ("record", "refused", "now", "by_itself", "way"),
    [
        (None, None, 1500.0, False, "none"),
        (None, None, 1500.0, True, "fetch"),
        (KEPT, None, 1500.0, False, "use"),
        (KEPT, OTHER, 1500.0, False, "use"),
        (KEPT, TOKEN, 1500.0, False, "refresh"),
        (KEPT, None, 1989.0, False, "use"),
        (KEPT, None, 1991.0, False, "refresh"),
        (KEPT, None, 9999.0, True, "refresh"),
        (NO_REFRESH, None, 1991.0, False, "use"),
        (NO_REFRESH, TOKEN, 1500.0, False, "none"),
        (NO_REFRESH, TOKEN, 1500.0, True, "fetch"),
        (NO_REFRESH, None, 1991.0, True, "fetch"),
        # A short life has a short margin: else each request would be worth a refresh.
        (
            Record(access_token=TOKEN, refresh_token="r", token_endpoint="x", issued_at=0.0, expires_at=5.0),
            None,
            4.0,
            False,
            "use",
        ),
    ],
)
def test_what_is_done_for_a_token(
    record: Record | None, refused: str | None, now: float, by_itself: bool, way: str
) -> None:
    assert decide(record, refused, now, by_itself=by_itself) == way


def test_a_refresh_keeps_what_the_response_does_not_say() -> None:
    before = Record(access_token="a", refresh_token="r", scope="x y", wanted="z")
    after = with_tokens(before, {"access_token": "b", "expires_in": 60}, before.scope, 100.0)
    assert (after.access_token, after.refresh_token, after.scope, after.expires_at) == ("b", "r", "x y", 160.0)
    assert after.wanted == "z"
    assert with_tokens(after, {"access_token": "c", "scope": "x y z"}, None, 100.0).wanted is None


def test_scopes_are_joined_each_once_and_in_order() -> None:
    assert union("a b", None, "b c") == "a b c"
    assert union(None, "") is None


def test_a_record_reads_as_it_was_written_and_shows_no_token() -> None:
    record = Record(
        server="https://a/mcp", client=Client(id="c", secret="hush"), access_token=TOKEN, refresh_token="r-1"
    )
    assert read_record(record_json(record)) == record
    assert record.secrets == {TOKEN, "r-1", "hush"}
    assert not any(each in repr(record) for each in record.secrets)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"version": 2},
        {"version": 1, "access_token": 3},
        {"version": 1, "client": {"odd": 1}},
        {"version": 1, "expires_at": True},
    ],
)
def test_anything_else_is_no_record(value: Any) -> None:
    assert read_record(value) is None


def test_another_url_or_another_client_is_another_login_and_a_name_tells_neither() -> None:
    keys = [
        key_of(url, settings)
        for url in ("https://a/mcp", "https://a/mcp?k=hush", "https://b/mcp")
        for settings in (OAuth(), OAuth(client_id="c"), OAuth(client_id="c", issuer="https://i"))
    ]
    assert len(set(keys)) == len(keys)
    assert key_of("HTTPS://A:443/mcp#x", OAuth()) == keys[0]
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in keys)


SECRET = "s3cret-of-client"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"oauth": True}, None),
        ({"oauth": {}}, None),
        ({"oauth": {"enabled": True}}, None),
        ({"oauth": False}, OAuth(enabled=False)),
        ({"oauth": {"clientId": "a", "callbackPort": 8080}}, OAuth(client_id="a", callback_port=8080)),
        (
            {"oauth": {"clientId": "a", "clientSecret": SECRET, "scope": "x y"}},
            OAuth(client_id="a", client_secret=SECRET, scopes=("x", "y")),
        ),
        (
            {"oauth": {"scopes": ["x", "y"], "authServerMetadataUrl": "https://a/m"}},
            OAuth(scopes=("x", "y"), metadata_url="https://a/m"),
        ),
        (
            {"oauth": {"client_id": "a", "redirect_uri": "http://127.0.0.1:1/x"}},
            OAuth(client_id="a", redirect_uri="http://127.0.0.1:1/x"),
        ),
        (
            {"auth": {"CLIENT_ID": "a", "CLIENT_SECRET": SECRET, "scopes": ["x"]}},
            OAuth(client_id="a", client_secret=SECRET, scopes=("x",)),
        ),
        (
            {
                "oauth": {
                    "grantType": "client_credentials",
                    "clientId": "a",
                    "clientSecret": "${S}",
                    "issuer": "https://i",
                }
            },
            OAuth(grant="client_credentials", client_id="a", client_secret="${S}", issuer="https://i"),
        ),
        (
            {"oauth": {"clientId": "a", "privateKey": "keys/a.pem", "signingAlgorithm": "ES256"}},
            OAuth(client_id="a", private_key="keys/a.pem", signing_algorithm="ES256"),
        ),
        (
            {"oauth": {"grantType": "client_credentials", "clientId": "a", "privateKey": f"-----BEGIN X\n{SECRET}\n"}},
            OAuth(grant="client_credentials", client_id="a", private_key=f"-----BEGIN X\n{SECRET}\n"),
        ),
    ],
)
def test_a_login_is_read_as_other_hosts_write_it(written: dict[str, Any], read: OAuth | None) -> None:
    found = read_entry("web", {"url": "https://a/mcp", **written})
    assert (found.problems, found.warnings) == ((), ())
    assert found.entry.oauth == read
    assert SECRET not in repr(found.entry)
    assert read_entry("web", entry_json(found.entry)).entry == found.entry


@pytest.mark.parametrize(
    ("oauth", "path", "message"),
    [
        ({"clientId": 3}, "clientId", "expected a string, found the number 3"),
        ({"callbackPort": "80"}, "callbackPort", "expected a port"),
        ({"callbackPort": True}, "callbackPort", "expected a port"),
        ({"scopes": ["a", 1]}, "scopes", "expected strings in this list, found the number 1"),
        ({"issuer": "http://a"}, "issuer", "expected a URL that begins with https://"),
        ({"redirectUri": "https://a/x"}, "redirectUri", "expected a URL on this machine"),
        ({"signingAlgorithm": "none"}, "signingAlgorithm", "expected one of RS256, "),
        ({"signingAlgorithm": "HS256"}, "signingAlgorithm", "expected one of RS256, "),
        ({"clientId": "a\nb"}, "clientId", "expected a string, found a character in it"),
        ({"privateKey": "a\0b"}, "privateKey", "expected a string, found a character in it"),
        ({"grantType": "password"}, "grantType", "expected authorization_code or client_credentials"),
    ],
)
def test_what_is_wrong_in_it_is_told_with_its_place(oauth: dict[str, Any], path: str, message: str) -> None:
    (problem,) = read_entry("web", {"url": "https://a/mcp", "oauth": oauth}).problems
    assert problem.path == ("oauth", path)
    assert problem.message.startswith(message)


def test_what_is_not_read_is_kept_and_warned_about() -> None:
    oauth = {"clientId": "a", "tokenUrl": "https://a/token", "audiences": ["b"], "cilentSecret": "c", "_note": 1}
    found = read_entry("web", {"url": "https://a/mcp", "oauth": oauth})
    assert [".".join(map(str, each.path)) for each in found.warnings] == [
        "oauth.tokenUrl",
        "oauth.audiences",
        "oauth.cilentSecret",
    ]
    assert "did you mean 'clientSecret'?" in found.warnings[2].message
    (odd,) = read_entry("web", {"url": "https://a/mcp", "oauth": "github"}).warnings
    assert odd.message.startswith("not read: expected an object, true or false")
    (stdio,) = read_entry("web", {"command": "x", "oauth": {"clientId": "a"}}).warnings
    assert stdio.message == "not read: a server with a command is not logged in to"


def test_client_credentials_without_a_secret_are_no_login() -> None:
    (problem,) = read_entry(
        "web", {"url": "https://a/", "oauth": {"grantType": "client_credentials", "clientId": "a"}}
    ).problems
    assert problem.message == "the grant client_credentials needs clientSecret (or privateKey)"


@pytest.mark.parametrize(
    ("oauth", "message"),
    [
        (
            {"clientId": "a", "clientSecret": "b", "privateKey": "c"},
            "a client has a clientSecret or a privateKey, not both",
        ),
        ({"privateKey": "c"}, "a privateKey needs its clientId"),
        ({"grantType": "client_credentials", "clientSecret": "b"}, "the grant client_credentials needs clientId"),
        ({"grantType": "client_credentials", "privateKey": "b"}, "a privateKey needs its clientId"),
    ],
)
def test_parts_that_do_not_go_together_are_told(oauth: dict[str, Any], message: str) -> None:
    (problem,) = read_entry("web", {"url": "https://a/", "oauth": oauth}).problems
    assert problem.message == message


def test_a_private_key_is_read_from_its_file_and_no_line_of_it_shown(tmp_path: Path) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{SECRET}aaaa\n{SECRET}bbbb\n-----END PRIVATE KEY-----\n"
    (tmp_path / "a.pem").write_text(key)
    (tmp_path / "odd.pem").write_text(SECRET)
    for written in ("a.pem", "${FILE}", "${KEY}"):
        entry = ServerEntry(
            "web", url="https://a/", oauth=OAuth(client_id="a", private_key=written), source=str(tmp_path / "mcp.json")
        )
        done = expand(entry, environ={"FILE": "a.pem", "KEY": key})
        assert done.oauth is not None
        assert done.oauth.private_key == key
        assert {f"{SECRET}aaaa", f"{SECRET}bbbb"} <= done.secrets
        assert SECRET not in repr(done)
    for name, why in (("odd.pem", "holds no private key"), ("none.pem", "cannot be read: no such file")):
        with pytest.raises(ExpandError, match=why) as failed:
            expand(evolve(entry, oauth=OAuth(client_id="a", private_key=name)), environ={})
        assert str(failed.value).startswith(f"oauth.privateKey: {tmp_path / name} ")
        assert SECRET not in str(failed.value)


def test_variables_are_put_in_and_the_secret_is_one() -> None:
    entry = ServerEntry(
        "web", url="https://a/mcp", oauth=OAuth(client_id="${ID}", client_secret="${SECRET}", scopes=("${S}",))
    )
    done = expand(entry, environ={"ID": "abcd", "SECRET": SECRET, "S": "x"})
    assert done.oauth == OAuth(client_id="abcd", client_secret=SECRET, scopes=("x",))
    assert SECRET in done.secrets
    assert SECRET not in repr(done)
