"""Specifications: their rules hold at the edges, and a number out of range is refused in one line."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.supervision import Backoff, ChildSpec, Intensity, Shutdown


async def nothing(ctx: object) -> None: ...


def test_backoff_doubles_and_stays_at_its_maximum() -> None:
    backoff = Backoff(base=0.5, max=30.0, jitter=0)
    rng = random.Random(0)
    assert [backoff.delay(n, rng) for n in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]


@settings(deadline=None, derandomize=True)
@given(n=st.integers(0, 10**30), seed=st.integers(), jitter=st.floats(0, 1), base=st.floats(0, 1e300))
def test_no_number_of_deaths_and_no_jitter_exceeds_the_maximum(n: int, seed: int, jitter: float, base: float) -> None:
    assert 0 <= Backoff(base=base, max=30.0, jitter=jitter).delay(n, random.Random(seed)) <= 30.0


@settings(deadline=None, derandomize=True)
@given(n=st.integers(0, 5), seed=st.integers())
def test_jitter_spreads_around_the_delay_on_both_sides(n: int, seed: int) -> None:
    delay = Backoff(base=0.5, max=1e9, jitter=0.1).delay(n, random.Random(seed))
    assert 0.5 * 2**n * 0.9 <= delay <= 0.5 * 2**n * 1.1


def test_jitter_comes_from_the_injected_random() -> None:
    backoff = Backoff(jitter=0.5)
    first = [backoff.delay(2, random.Random(3)) for _ in range(2)]
    assert first[0] == first[1] != backoff.delay(2, random.Random(4))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backoff(base=-1),
        lambda: Backoff(max=math.inf),
        lambda: Backoff(jitter=1.5),
        lambda: Backoff(reset_after=math.nan),
        lambda: Intensity(restarts=-1),
        lambda: Intensity(window=0),
        lambda: Intensity(then="ignore"),  # type: ignore[arg-type]
        lambda: Intensity(park_retry=-1),
        lambda: Shutdown(grace=-0.1),
        lambda: Shutdown(join=math.inf),
        lambda: ChildSpec("a", nothing, start_timeout=0),
        lambda: ChildSpec("a", nothing, mailbox=0),
        lambda: ChildSpec("a", nothing, mailbox=1.5),
    ],
)
def test_a_number_out_of_range_is_refused_in_one_line(make: object) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_an_unbounded_mailbox_and_an_unlimited_start_are_allowed() -> None:
    spec = ChildSpec("a", nothing, mailbox=math.inf, start_timeout=math.inf)
    assert (spec.mailbox, spec.start_timeout) == (math.inf, math.inf)
