"""The restart decision, as a pure function: its table, and what holds of every run of deaths."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.supervision import Backoff, ChildSpec, Intensity, Restart
from playbill.supervision.ledger import (
    RESTARTS,
    Decision,
    Escalate,
    Exit,
    History,
    Park,
    Remove,
    RestartAfter,
    cleared,
    decide,
    next_attempt,
    restarted,
)


async def nothing(ctx: object) -> None: ...


def spec(**rules: Any) -> ChildSpec:
    rules.setdefault("backoff", Backoff(jitter=0))
    return ChildSpec("a", nothing, **rules)


def die(
    of: ChildSpec, history: History, now: float, *, kind: Any = "abnormal", healthy_since: float | None = None
) -> tuple[History, Decision]:
    return decide(of, history, Exit(kind, "boom"), healthy_since=healthy_since, now=now, rng=random.Random(0))


PARKING = Intensity(restarts=2, window=60, then="park", park_retry=300)


@pytest.mark.parametrize(
    ("restart", "normal", "abnormal"),
    [
        (Restart.PERMANENT, RestartAfter(0.5), RestartAfter(0.5)),
        (Restart.TRANSIENT, Remove(), RestartAfter(0.5)),
        (Restart.TEMPORARY, Remove(), Remove()),
    ],
)
def test_restart_types_are_as_in_otp(restart: Restart, normal: Decision, abnormal: Decision) -> None:
    of = spec(restart=restart)
    assert die(of, cleared(), 0, kind="normal")[1] == normal
    assert die(of, cleared(), 0, kind="abnormal")[1] == abnormal
    assert die(of, cleared(), 0, kind="start_failed")[1] == abnormal
    assert die(of, cleared(), 0, kind="shutdown")[1] == Remove()


def test_the_table_covers_every_restart_type_and_kind_of_end() -> None:
    kinds = {"normal", "shutdown", "abnormal", "start_failed"}
    assert set(RESTARTS) == {(restart, kind) for restart in Restart for kind in kinds}


def test_as_many_restarts_as_the_limit_are_borne_and_the_next_death_is_over_it() -> None:
    history, decisions = cleared(), []
    for now in (0, 1, 2):
        history, decision = die(spec(intensity=PARKING), history, now)
        decisions.append(decision)
    assert decisions == [RestartAfter(0.5), RestartAfter(1.0), Park(300)]
    assert history.parked


def test_a_core_child_over_the_limit_escalates_with_its_last_reason() -> None:
    history = cleared()
    of = spec(intensity=Intensity(restarts=1, window=60))
    history, _ = die(of, history, 0)
    assert die(of, history, 1)[1] == Escalate("boom")


def test_restarts_that_left_the_window_no_longer_count() -> None:
    history = cleared()
    for now in (0, 59, 60, 119, 120, 179):
        history, decision = die(spec(intensity=PARKING), history, now)
        assert isinstance(decision, RestartAfter)


def test_a_parked_childs_slow_retry_parks_again_however_long_it_lived_unhealthy() -> None:
    parked = History(failures=3, parked=True, last_reason="boom")
    history, decision = die(spec(intensity=PARKING), restarted(parked), 10_000)
    assert decision == Park(300)
    assert (history.parked, history.restarts, history.failures) == (True, 1, 4)


def test_a_first_attempt_that_is_futile_parks_at_once_where_children_park() -> None:
    futile = Exit("abnormal", "no such command", futile=True)
    of = spec(intensity=PARKING)
    history, decision = decide(of, cleared(), futile, healthy_since=None, now=0, rng=random.Random(0))
    assert decision == Park(300)
    assert history.parked
    assert history.last_reason == "no such command"
    assert next_attempt(of, history) is None
    core = spec(intensity=Intensity(restarts=2, window=60, then="escalate"))
    assert decide(core, cleared(), futile, healthy_since=None, now=0, rng=random.Random(0))[1] == RestartAfter(0.5)


def test_a_futile_attempt_after_another_death_is_a_death_like_any_other() -> None:
    of = spec(intensity=PARKING)
    history, _ = die(of, cleared(), 0)
    futile = Exit("abnormal", "no such command", futile=True)
    assert decide(of, history, futile, healthy_since=None, now=1, rng=random.Random(0))[1] == RestartAfter(1.0)


def test_without_slow_retry_a_parked_child_waits_for_a_hand() -> None:
    of = spec(intensity=Intensity(restarts=0, then="park", park_retry=None))
    assert die(of, cleared(), 0)[1] == Park(None)


def test_health_proven_for_reset_after_forgets_earlier_deaths_before_this_one_is_counted() -> None:
    old = History(failures=9, stamps=(1.0, 2.0), restarts=9, parked=True, last_reason="old")
    history, decision = die(spec(intensity=PARKING), old, 100, healthy_since=70)
    assert decision == RestartAfter(0.5)
    assert history == History(failures=1, stamps=(100,), restarts=0, parked=False, last_reason="boom")


def test_health_a_moment_short_of_reset_after_forgets_nothing() -> None:
    old = History(failures=3, last_reason="old")
    assert die(spec(), old, 100, healthy_since=70.001)[1] == RestartAfter(4.0)


def test_start_then_die_backs_off_although_it_was_started_each_time() -> None:
    history, delays = cleared(), []
    of = spec(intensity=Intensity(restarts=100, window=1e6))
    for turn in range(8):
        history, decision = die(of, history, turn * 1000.0, healthy_since=turn * 1000.0 - 29)
        assert isinstance(decision, RestartAfter)
        delays.append(decision.delay)
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_the_attempt_names_which_restart_of_how_many_is_next() -> None:
    of = spec(intensity=PARKING)
    assert next_attempt(of, cleared()) is None
    history, _ = die(of, cleared(), 0)
    assert next_attempt(of, history) == (1, 2)
    history, _ = die(of, history, 1)
    assert next_attempt(of, history) == (2, 2)
    history, _ = die(of, history, 2)
    assert next_attempt(of, history) is None


deaths = st.lists(
    st.tuples(
        st.floats(0, 100),
        st.sampled_from(["normal", "abnormal", "start_failed"]),
        st.one_of(st.none(), st.floats(0, 100)),
        st.booleans(),
    ),
    max_size=40,
)
intensities = st.builds(
    Intensity,
    restarts=st.integers(0, 6),
    window=st.floats(0.1, 200),
    then=st.sampled_from(["park", "escalate"]),
    park_retry=st.one_of(st.none(), st.floats(0, 1000)),
)


@settings(deadline=None, derandomize=True)
@given(deaths=deaths, intensity=intensities, seed=st.integers(), jitter=st.floats(0, 1))
def test_of_every_run_of_deaths(deaths: list[Any], intensity: Intensity, seed: int, jitter: float) -> None:
    of = spec(intensity=intensity, backoff=Backoff(jitter=jitter, reset_after=50))
    rng, history, now = random.Random(seed), cleared(), 0.0
    restarts: list[float] = []
    for lived, kind, healthy_for, futile in deaths:
        now += lived
        proven = healthy_for is not None and healthy_for >= 50
        before = history
        since = None if healthy_for is None else now - healthy_for
        # Floating point may round a health of exactly 50 s either way; the decision's own arithmetic is the judge.
        proven = since is not None and now - since >= 50
        history, decision = decide(of, history, Exit(kind, kind, 0, futile), healthy_since=since, now=now, rng=rng)
        assert history.last_reason == kind
        assert len(history.stamps) <= intensity.restarts
        if proven:
            restarts = []
            assert history.failures == 1
        else:
            assert history.failures == before.failures + 1
        match decision:
            case RestartAfter(delay):
                assert 0 <= delay <= of.backoff.max
                assert not history.parked
                restarts.append(now)
                assert sum(now - at < intensity.window for at in restarts) <= intensity.restarts
            case Park(retry_after):
                assert intensity.then == "park"
                assert retry_after == intensity.park_retry
                assert history.parked
                over = sum(now - at < intensity.window for at in restarts) >= intensity.restarts
                first = proven or not before.failures
                assert over or (before.parked and not proven) or (futile and first)
            case Escalate(reason):
                assert intensity.then == "escalate"
                assert reason == kind
                assert sum(now - at < intensity.window for at in restarts) >= intensity.restarts
                return
            case Remove():
                pytest.fail("a permanent child is never removed for dying")


@settings(deadline=None, derandomize=True)
@given(deaths=deaths, intensity=intensities, restart=st.sampled_from(list(Restart)))
def test_a_stop_we_asked_for_is_never_answered_with_a_restart(
    deaths: list[Any], intensity: Intensity, restart: Restart
) -> None:
    of, history, now = spec(intensity=intensity, restart=restart), cleared(), 0.0
    for lived, kind, _, _ in deaths:
        now += lived
        assert die(of, history, now, kind="shutdown")[1] == Remove()
        history, _ = die(of, history, now, kind=kind)
