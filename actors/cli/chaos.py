"""`playbill chaos`: the host under thousands of seeded runs in virtual time, in which everything goes wrong that can.

It reads no config and starts no process. Exit codes tell what sort of failure the first one was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..testing.chaos import Judged, examine, level_of, shrunk, systematic, wire_is_possible
from ..testing.faults import Level
from ..testing.literal import literal
from ..testing.plans import Plan, draw
from ..testing.reports import load, report, store, versions
from .errors import CliError, Exit, diagnose
from .render import print_json
from .voice import detail, voice

__all__ = ["chaos"]

SCHEMA = 1
EXITS = {"crash": Exit.CRASH, "liveness": Exit.LIVENESS, "correctness": Exit.CORRECTNESS}
BATCH = 16
PATIENCE = 0.5
"""Seconds of silence before a person is told how far it is."""


def chaos(
    *,
    seeds: int | None,
    seed: int | None,
    pairwise: bool,
    replay: str | None,
    keep: str | None,
    wire: bool | None,
    http: bool,
    jobs: int,
    as_json: bool,
) -> int:
    """Play plans until all are played, or until one has failed; that one is shrunk and reported.

    Args:
        seeds: how many plans are drawn; None: 100, or 1 with ``seed``.
        seed: the first of them.
        pairwise: play the systematic plans instead.
        replay: play the plan in this file instead.
        keep: a folder in which a failure is stored, or None.
        wire: play on the wire, or neither there nor over HTTP; None: by the seed and, of the systematic plans, at all levels.
        http: play over HTTP.
        jobs: processes side by side.
        as_json: print JSON.

    Returns:
        `Exit.OK`, or what `EXITS` has for the failure.
    """
    started = time.monotonic()
    said = voice()
    plans: Iterator[Plan]
    if replay is not None:
        plans = iter([_load(replay)])
    elif wire is not None and http:
        raise CliError(Exit.USAGE, "--http and --wire say two different levels; give one")
    elif wire and not wire_is_possible():
        raise CliError(Exit.USAGE, "--wire needs pipes that trio can wait for, which this platform has not")
    elif pairwise:
        every: tuple[Level, ...] = ("connection", "wire", "http") if wire_is_possible() else ("connection", "http")
        asked = _asked(wire, http)
        plans = chain.from_iterable(systematic(level) for level in (every if asked is None else (asked,)))
    else:
        first = seed or 0
        drawn = range(first, first + (seeds or (100 if seed is None else 1)))
        plans = (draw(each, _asked(wire, http) or level_of(each)) for each in drawn)
    failed: Judged | None = None
    count = 0
    for judged in _examined(plans, jobs):
        count += 1
        detail(f"run {count}: seed {judged.plan.seed}, {judged.kind}")
        if said.shows_progress and time.monotonic() - started >= PATIENCE:
            said.draw(f"{count} runs, nothing wrong yet")
        if judged.kind != "ok":
            failed = judged
            break
    said.draw("")
    if failed is None:
        _tell(as_json, {"ok": True, "runs": count, "seconds": round(time.monotonic() - started, 2)})
        return Exit.OK
    diagnose(f"a failure after {count} runs, {failed.kind}: {failed.reasons[0]}; it is being shrunk")
    least = shrunk(failed)
    file = Path(replay) if replay is not None else None if keep is None else store(least, Path(keep))
    if as_json:
        value: dict[str, Any] = {
            "ok": False,
            "runs": count,
            "seconds": round(time.monotonic() - started, 2),
            "kind": least.kind,
        }
        value |= {"seed": failed.plan.seed, "reasons": list(least.reasons), "plan": literal(least.plan)}
        print_json({"schema": SCHEMA, **value, "versions": versions(), "file": None if file is None else str(file)})
    else:
        print(report(least, file=file))
    return EXITS[least.kind]


def _asked(wire: bool | None, http: bool) -> Level | None:
    return "http" if http else None if wire is None else "wire" if wire else "connection"


def _load(file: str) -> Plan:
    try:
        return load(Path(file))
    except OSError as error:
        raise CliError(Exit.USAGE, f"{file}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise CliError(Exit.USAGE, f"{file}: {error}") from None


def _examined(plans: Iterator[Plan], jobs: int) -> Iterator[Judged]:
    if jobs <= 1:
        yield from map(examine, plans)
        return
    with ProcessPoolExecutor(jobs) as pool:
        while batch := list(islice(plans, BATCH * jobs)):
            yield from pool.map(examine, batch, chunksize=4)


def _tell(as_json: bool, value: dict[str, Any]) -> None:
    if as_json:
        print_json({"schema": SCHEMA, **value, "versions": versions()})
    else:
        print(f"{value['runs']} runs, nothing wrong, in {value['seconds']:.1f} s ({versions()})")
