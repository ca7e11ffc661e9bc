from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.model.mask import looks_secret, mask_args, mask_text, mask_url

SECRET = "hunter2Xyz"


@pytest.mark.parametrize(
    "args",
    [
        ["--token", SECRET],
        ["--api-key", SECRET],
        ["--apiKey", SECRET],
        ["--password", SECRET],
        ["--access-token", SECRET],
        ["--client_secret", SECRET],
        ["--key", SECRET],
        ["--githubtoken", SECRET],
        [f"--token={SECRET}"],
        [f"--db-password={SECRET}"],
        [f"--auth-token:{SECRET}"],
        [f"--token{SECRET.upper()}"],
        [f"-p{SECRET}"],
        ["--password", f"-{SECRET}"],
        ["-e", f"GITHUB_TOKEN={SECRET}"],
        [f"-eAPI_KEY={SECRET}"],
        [f"--env=DB_PASSWORD={SECRET}"],
        ["-H", f"Authorization: Bearer {SECRET}"],
        ["-H", f"X-Api-Key: {SECRET}"],
        [f"-HAuthorization: Basic {SECRET}"],
        ["Bearer", SECRET],
        ["sh", "-c", f"exec server --token {SECRET} --port 80"],
        ["sh", "-c", f"API_KEY='{SECRET} {SECRET}' server"],
        [f'{{"token": "{SECRET}", "port": 1}}'],
        [f"postgresql://user:{SECRET}@host:5432/db"],
        [f"postgresql://user:{SECRET}/1@host:5432/db"],
        [f"postgresql://{SECRET}@host/db"],
        [f"https://host/mcp?api_key={SECRET}&q=1"],
        [f"https://host/mcp#access_token={SECRET}"],
        ["--token", f"${{TOKEN:-{SECRET}}}"],
        ["--token", f"{SECRET}${{TOKEN}}{SECRET}"],
        *(
            [f"{prefix}{SECRET}"]
            for prefix in ("ghp_", "github_pat_", "glpat-", "sk-", "xoxb-", "sk_live_", "npm_", "hf_")
        ),
        [f"x ghp_{SECRET},y"],
    ],
    ids=" ".join,
)
def test_a_secret_is_not_readable_in_arguments(args: list[str]) -> None:
    masked = mask_args(args)
    assert len(masked) == len(args)
    assert SECRET.lower() not in " ".join(masked).lower()
    assert "***" in " ".join(masked)


@pytest.mark.parametrize(
    "args",
    [
        ["--token", "${TOKEN}"],
        ["--token=${TOKEN}"],
        ["-H", "Authorization: Bearer ${TOKEN}"],
        ["https://${USER}:${PASS}@host/?token=${TOKEN}"],
        ["-y", "@modelcontextprotocol/server-memory"],
        ["mcp-server-git", "--repository", "/srv/a"],
        ["--max-tokens", "100"],
        ["--max-tokens=100"],
        ["--token-file", "/run/token"],
        ["--tokenizer", "gpt"],
        ["-p", "8080"],
        ["-p8080:80"],
        ["-path"],
        ["--port=3000"],
        ["https://unpkg.com/@scope/pkg"],
        ["http://[::1]:80/@x"],
        ["task-manager-server", "hf_transfer", "npm_config_registry"],
        ["author=me", "monkey: 1", "tokens_per_minute=5"],
    ],
    ids=" ".join,
)
def test_what_is_no_secret_stays_readable(args: list[str]) -> None:
    assert mask_args(args) == tuple(args)


def test_the_rest_of_a_masked_argument_stays_readable() -> None:
    assert mask_args(["--token=abc", "--port", "80"]) == ("--token=***", "--port", "80")
    assert mask_args(["--token", "--port", "80"]) == ("--token", "--port", "80")
    assert mask_args(["postgresql://u:p@h:5432/db?sslmode=on"]) == ("postgresql://***:***@h:5432/db?sslmode=on",)
    assert mask_text("curl -H 'Authorization: Bearer abcdefgh' https://h/x") == (
        "curl -H 'Authorization: Bearer ***' https://h/x"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://u:p@h:8/mcp?a=1", "https://***:***@h:8/mcp?a=1"),
        ("https://h/?key=abc&sig=d&q=1", "https://h/?key=***&sig=***&q=1"),
        ("https://h/?token=${T}", "https://h/?token=${T}"),
        ("https://h/s/" + "Ab1" * 20 + "/mcp", "https://h/s/***/mcp"),
        ("not a url at all", "not a url at all"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert mask_url(url) == shown


pieces = st.sampled_from(
    [
        "--token",
        "=",
        ":",
        " ",
        "Bearer",
        "${A}",
        "${A:-b}",
        "ghp_",
        "abc1",
        "://",
        "https",
        "@",
        "?",
        "&",
        "key",
        '"',
        "-p",
        "*",
    ]
)
texts = st.text(max_size=40) | st.lists(pieces, max_size=12).map("".join)


@settings(max_examples=200)
@given(st.lists(texts, max_size=5))
def test_masking_is_total_and_masking_twice_changes_nothing(args: list[str]) -> None:
    once = mask_args(args)
    assert len(once) == len(args)
    assert mask_args(once) == once
    for arg in args:
        assert mask_url(mask_url(arg)) == mask_url(arg)
        assert mask_text(mask_text(arg)) == mask_text(arg)


def test_names_are_judged_by_their_words() -> None:
    for name in ("--api-key", "API_KEY", "apiKey", "X-Api-Key", "--secret", "githubToken", "PGPASSWORD", "db.password"):
        assert looks_secret(name), name
    for name in (
        "",
        "--port",
        "monkey",
        "author",
        "passenger",
        "token_file",
        "max_tokens",
        "keyboard",
        "--secret-name",
    ):
        assert not looks_secret(name), name


@pytest.mark.parametrize(
    "text", ["a" * 50_000, "a." * 25_000, "-" * 50_000, "a:" * 25_000, "://@" * 12_000, "?a" * 25_000]
)
def test_long_texts_take_linear_time(text: str) -> None:
    # Nothing is timed: a quadratic pattern would take minutes here and be seen.
    assert mask_text(text) is not None


@pytest.mark.parametrize("word", ["Bearer", "bearer", "Basic"])
def test_an_argument_that_is_a_scheme_and_its_credentials_is_masked_however_short(word: str) -> None:
    assert mask_args(["-x", f"{word} xyz", f"{word} ${{T}}", f"{word} of good news"]) == (
        "-x",
        f"{word} ***",
        f"{word} ${{T}}",
        f"{word} of good news",
    )
