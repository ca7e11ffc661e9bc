"""What a status means, as a table; and when a supervisor tries again that was told when."""

from __future__ import annotations

import random

import pytest
from playbill.actors.edge.wire.remote.meaning import LONGEST_WAIT, ends_session, read_status, retry_after
from playbill.supervision import Backoff, ChildSpec, Intensity
from playbill.supervision.ledger import Exit, Park, RestartAfter, cleared, decide


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("0", 0.0),
        (" 30 ", 30.0),
        ("2.5", 2.5),
        ("1000000000", LONGEST_WAIT),
        ("9" * 400, LONGEST_WAIT),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT),
        ("Fri, 99 Foo 9999 23:59:59 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_bounded(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, 100.0) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "words", "at_first", "later"),
    [
        (401, {}, "HTTP 401 Unauthorized: it wants a login", True, True),
        (403, {}, "HTTP 403 Forbidden", False, False),
        (403, {"www-authenticate": "Bearer"}, "HTTP 403 Forbidden: the login is not enough", True, False),
        (429, {"retry-after": "7"}, "HTTP 429 Too Many Requests; it asks to wait 7 s", False, False),
        (503, {}, "HTTP 503 Service Unavailable", False, False),
        (500, {"retry-after": "7"}, "HTTP 500 Internal Server Error", False, False),
        (799, {}, "HTTP 799", False, False),
    ],
)
def test_a_status_in_words_and_whether_it_is_about_a_login(
    status: int, headers: dict[str, str], words: str, at_first: bool, later: bool
) -> None:
    meaning = read_status(status, headers, 0.0)
    assert str(meaning) == words
    assert (meaning.wants_login(handshake=True), meaning.wants_login(handshake=False)) == (at_first, later)


@pytest.mark.parametrize(
    ("status", "code", "body", "ended"),
    [
        (404, None, "", True),
        (404, -32001, "Session not found", True),
        (404, -32601, "Method not found", False),
        (400, -32000, "Bad Request: No valid session ID provided", True),
        (400, -32602, "Invalid params", False),
        (400, None, "", False),
        (500, None, "session", False),
    ],
)
def test_whether_a_session_has_ended(status: int, code: int | None, body: str, ended: bool) -> None:
    assert ends_session(status, None if code is None else {"code": code}, body) is ended


async def _body(ctx: object) -> None:
    """Nothing is run here."""


SPEC = ChildSpec(
    "web",
    _body,  # type: ignore[arg-type]
    backoff=Backoff(base=1.0, max=30.0, jitter=0.0),
    intensity=Intensity(restarts=1, window=60.0, then="park", park_retry=300.0),
)


@pytest.mark.parametrize(("told", "delay"), [(0.0, 1.0), (0.5, 1.0), (90.0, 90.0)])
def test_nothing_is_started_before_the_time_that_its_end_named(told: float, delay: float) -> None:
    exit = Exit("abnormal", "HTTP 503", told)
    history, decision = decide(SPEC, cleared(), exit, healthy_since=None, now=0.0, rng=random.Random(1))
    assert decision == RestartAfter(delay, asked=told > 1.0)
    _, decision = decide(SPEC, history, exit, healthy_since=None, now=1.0, rng=random.Random(1))
    assert decision == Park(300.0)
    _, decision = decide(
        SPEC, history, Exit("abnormal", "HTTP 503", 800.0), healthy_since=None, now=1.0, rng=random.Random(1)
    )
    assert decision == Park(800.0, asked=True)
