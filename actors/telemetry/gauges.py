"""The instruments: two durations, a count of restarts, and what published snapshots say of servers, catalogs and budgets.

The last are observable: whoever collects metrics, in a thread of theirs, reads the snapshots that living hosts published last.
These are immutable, so that nobody waits for anybody. Of several hosts in one program the sums are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ..model.plain import label
from . import names
from .backend import complain, harmless, meter
from .names import Value

if TYPE_CHECKING:
    from ..model.snapshot import PluginModel, Snapshot

__all__ = ["Instruments", "figures", "instruments", "restarted", "unwatch", "watch"]


@frozen(eq=False)
class Instruments:
    """What one meter has of ours.

    Args:
        durations: histograms by name.
        restarts: a counter.
    """

    durations: Mapping[str, Any]
    restarts: Any


_made: tuple[object, Instruments] | None = None
_hosts: dict[int, Callable[[], Snapshot]] = {}

Figures = dict[tuple[str, str | None], int]
"""By the name of the instrument and the value of its one attribute, if it has one."""

_OBSERVED = {
    names.SERVERS: ("{server}", names.PHASE, "Configured servers, by phase."),
    names.CATALOG_TOOLS: ("{tool}", names.VERDICT, "Tools, native and MCP, by what became of them."),
    names.CATALOG_BUDGET: ("{tool}", None, "The cap on tools in force."),
    names.CATALOG_TOKENS: (
        "{token}",
        None,
        "Tokens of all tools that would be sent without a budget, when it caps them.",
    ),
    names.CATALOG_TOKEN_BUDGET: ("{token}", None, "The cap on tokens."),
}


def figures(model: PluginModel) -> Figures:
    """What a snapshot's model says in numbers: pure."""
    made: Counter[tuple[str, str | None]] = Counter()
    for server in model.servers:
        made[names.SERVERS, server.phase] += 1
        for tool in server.tools:
            made[names.CATALOG_TOOLS, tool.verdict] += 1
    made[names.CATALOG_TOOLS, "native"] = model.native_count
    if model.budget is not None:
        made[names.CATALOG_BUDGET, None] = model.budget
    if model.token_budget is not None:
        made[names.CATALOG_TOKEN_BUDGET, None] = model.token_budget
        made[names.CATALOG_TOKENS, None] = model.tokens or 0
    return dict(made)


def watch(host: object, snapshot: Callable[[], Snapshot]) -> None:
    """Have a host's snapshots observed until `unwatch`."""
    _hosts[id(host)] = snapshot
    instruments()


def unwatch(host: object) -> None:
    """No longer observe a host."""
    _hosts.pop(id(host), None)


def instruments() -> Instruments | None:
    """Those of the meter in force; None when nobody records. Never raises."""
    global _made
    found = meter()
    if found is None:
        return None
    if _made is None or _made[0] is not found:
        try:
            _made = (found, _make(found))
        except Exception as error:
            complain(error)
            return None
    return _made[1]


@harmless
def restarted(server: str, times: int = 1) -> None:
    """A server was started anew after it died, so often."""
    found = instruments()
    if found is not None:
        found.restarts.add(times, {names.SERVER: label(server)})


def _make(meter: Any) -> Instruments:
    durations = {
        name: meter.create_histogram(
            name, unit="s", description=words, explicit_bucket_boundaries_advisory=list(names.BUCKETS)
        )
        for name, words in (
            (names.OPERATION_DURATION, "The duration of an MCP request as its caller sees it, with what it waits for."),
            (names.SESSION_DURATION, "The duration of an MCP session, from its first list to its end."),
        )
    }
    restarts = meter.create_counter(names.RESTARTS, unit="{restart}", description="Starts of a server that had died.")
    for name, (unit, attribute, words) in _OBSERVED.items():
        make = meter.create_observable_gauge if attribute is None else meter.create_observable_up_down_counter
        make(name, callbacks=[_observer(name, attribute)], unit=unit, description=words)
    return Instruments(durations, restarts)


def _observer(name: str, attribute: str | None) -> Callable[[Any], Iterable[Any]]:
    def observe(_: Any) -> Iterable[Any]:
        from opentelemetry.metrics import Observation

        sums: Counter[str | None] = Counter()
        for snapshot in tuple(_hosts.values()):
            for (instrument, value), number in figures(snapshot().model).items():
                if instrument == name:
                    sums[value] += number
        for value, number in sums.items():
            attributes: dict[str, Value] = {} if attribute is None or value is None else {attribute: value}
            yield Observation(number, attributes)

    return observe
