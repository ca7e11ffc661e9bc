"""Which servers are ready, and why the others are not: the answer to `Host.ready`, from one model."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from .model.snapshot import PluginModel, ServerState

__all__ = ["Readiness", "answered", "readiness"]

_OFF = ("disabled", "stopping")  # a server is ``stopping`` only on its way to ``disabled``
_SETTLED = ("parked", "needs_auth", "untrusted", "invalid", *_OFF)


@frozen
class Readiness:
    """An answer to `Host.ready`.

    Args:
        ready: names of the servers that are ready.
        missing: name → one line why it is not.
        satisfied: whether what was required is ready; also the truth value.
    """

    ready: tuple[str, ...]
    missing: Mapping[str, str]
    satisfied: bool

    def __bool__(self) -> bool:
        return self.satisfied


def _required(model: PluginModel, require: str | Collection[str]) -> list[ServerState]:
    if isinstance(require, str):
        return [state for state in model.servers if state.phase not in _OFF]
    return [state for state in model.servers if state.name in require]


def answered(model: PluginModel, require: str | Collection[str]) -> bool:
    """Whether there is an answer: what is required is ready, or will not become so by itself."""
    states = _required(model, require)
    if require == "any" and any(state.phase == "ready" for state in states):
        return True
    return all(state.phase == "ready" or state.phase in _SETTLED for state in states)


def readiness(model: PluginModel, require: str | Collection[str]) -> Readiness:
    """The answer as things are now.

    Args:
        model: of the snapshot now.
        require: as in `Host.ready`.
    """
    states = _required(model, require)
    names = {state.name for state in states}
    missing = {state.name: _reason(state) for state in states if state.phase != "ready"}
    if not isinstance(require, str):
        missing |= {name: "it is not configured any more" for name in require if name not in names}
    ready = tuple(state.name for state in states if state.phase == "ready")
    return Readiness(ready, missing, satisfied=bool(ready) if require == "any" else not missing)


def _reason(state: ServerState) -> str:
    if state.error is not None:
        return f"{state.phase}: {state.error}"
    if state.phase == "starting":
        return "starting: " + ("its tool list is not in yet" if state.connected else "it has not answered yet")
    return state.phase
