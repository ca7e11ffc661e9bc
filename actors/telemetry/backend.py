"""The OpenTelemetry SDK, if the program has set one up: looked for each time, imported never.

Theory of operation. A program that sets up an SDK imports ``opentelemetry.trace`` (or ``.metrics``) to say so, and may do so
before or after it opens a host. So each time something is to be told we look among the modules that are imported already, and
ask for the provider in force. As long as that is the API's own stand-in nobody records, and nothing is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec

from .log import Log
from .names import SCOPE

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

__all__ = ["complain", "harmless", "meter", "tracer", "version"]

_LOG = Log("playbill.telemetry")

P = ParamSpec("P")
_complained: set[str] = set()


def harmless(work: Callable[P, None]) -> Callable[P, None]:
    """A function that raises no `Exception`: a backend's defect is told once in the log and costs what it was to record."""

    @wraps(work)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            work(*args, **kwargs)
        except Exception as error:
            complain(error)

    return guarded


def complain(error: Exception) -> None:
    """Tell of a backend that fails; each kind of failure once."""
    kind = type(error).__name__
    if kind not in _complained:
        _complained.add(kind)
        _LOG.warning(
            "what happens is not recorded: OpenTelemetry raised %s", kind, event="telemetry_failed", error_type=kind
        )


class _Source:
    """One of the two APIs.

    Args:
        module: its name.
        provider, scope: the functions of it that give the provider in force, and the provider's method that gives ours.
    """

    def __init__(self, module: str, provider: str, scope: str) -> None:
        self._module = module
        self._provider = provider
        self._scope = scope
        self._ask: Callable[[], Any] | None = None
        self._known: Any = None
        self._given: Any = None
        self._broken = False

    def get(self) -> Any:
        """The tracer or meter; None when nobody records."""
        ask = self._ask
        if ask is None:
            module = sys.modules.get(self._module)
            if module is None or _half_imported(module):
                return None
            ask = self._ask = getattr(module, self._provider)
        if self._broken:
            return None
        try:
            provider = ask()
            if provider is not self._known:
                self._known, self._given = provider, None
                # The API's own providers stand for none.
                if not type(provider).__module__.startswith(self._module):
                    self._given = getattr(provider, self._scope)(SCOPE, version())
        except Exception as error:
            # Most likely a name in the environment that leads nowhere; looking for it again takes long each time.
            self._broken = True
            complain(error)
            return None
        return self._given


def _half_imported(module: ModuleType) -> bool:
    """Whether another thread is importing it just now, as the one that imports ``mcp`` does: it is not waited for."""
    return bool(getattr(module.__spec__, "_initializing", False))


_tracing = _Source("opentelemetry.trace", "get_tracer_provider", "get_tracer")
_metering = _Source("opentelemetry.metrics", "get_meter_provider", "get_meter")


def tracer() -> Tracer | None:
    """Ours, of the provider in force now; None when nobody records spans. Never raises."""
    found: Tracer | None = _tracing.get()
    return found


def meter() -> Meter | None:
    """Ours, of the provider in force now; None when nobody records metrics. Never raises."""
    found: Meter | None = _metering.get()
    return found


def version() -> str:
    """Of this package."""
    import importlib.metadata  # it costs more than the rest of this room, and only somebody who watches asks

    try:
        return importlib.metadata.version("playbill")
    except importlib.metadata.PackageNotFoundError:
        return "0"
