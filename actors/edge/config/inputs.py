"""Inputs: what a file declares about its ``${input:ID}``, and asking the embedder for them at each (re)connect.

Theory of operation. An entry is expanded; where that fails for want of an input that was not asked for yet, it is asked for,
and the entry expanded again. So an input is asked for only where its value is needed, at each (re)connect, and one after the
other: two prompts never stand side by side. What the embedder does not supply may still come from the environment or the
declared default (see `expand`).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from ...model.config import InputSpec, ServerEntry
from ...model.nearest import nearest
from .expand import Expanded, ExpandError, InputMissing, expand
from .jsonc_walk import show_path
from .keys import kind_of

__all__ = ["Inputs", "Supply", "read_inputs"]

Inputs = Mapping[str, str] | Callable[[InputSpec], str | Awaitable[str | None] | None]
"""Values by id; or a function, sync or async, from what is declared to a value, or None when it has none."""

_KEYS = ("id", "type", "description", "password", "default", "options", "command", "args")


def read_inputs(value: Any) -> tuple[tuple[InputSpec, ...], list[str]]:
    """What the ``inputs`` of a file declare, and one line for each thing there that is wrong: it costs no server.

    Args:
        value: the JSON value.
    """
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), [f"inputs: expected a list of inputs, found {kind_of(value)}"]
    found: dict[str, InputSpec] = {}
    wrong: list[str] = []
    for i, each in enumerate(value):
        id_ = each.get("id") if isinstance(each, dict) else None
        if type(id_) is not str:
            what = "expected an object" if not isinstance(each, dict) else "expected an id, a string"
            wrong.append(f"{show_path(('inputs', i))}: {what}")
        elif id_ in found:
            wrong.append(f"{show_path(('inputs', i))}: the input {id_!r} is declared twice; the first counts")
        else:
            for key in each.keys() - set(_KEYS):
                if near := nearest(key, _KEYS):
                    wrong.append(f"{show_path(('inputs', i, key))}: unknown key (did you mean {near!r}?)")
            found[id_] = _spec(id_, each)
    return tuple(found.values()), wrong


def _spec(id_: str, raw: dict[str, Any]) -> InputSpec:
    def text(key: str) -> str | None:
        value = raw.get(key)
        return value if type(value) is str else None

    options = raw.get("options")
    # An option is its value, or an object of a label and a value.
    values = [o.get("value") if isinstance(o, dict) else o for o in options] if isinstance(options, list) else []
    return InputSpec(
        id_,
        type=text("type") or "promptString",
        description=text("description"),
        password=raw.get("password") is True,
        default=text("default"),
        options=tuple(value for value in values if type(value) is str),
    )


class Supply:
    """Expands entries, with what the embedder supplies.

    Args:
        inputs: see `Inputs`; None supplies none.
        inherit_env: names of our environment that every server gets besides the usual ones; True for all of it.

    Raises:
        TypeError: it is something else.
    """

    def __init__(self, inputs: Inputs | None = None, inherit_env: Collection[str] | bool = ()) -> None:
        if isinstance(inherit_env, str):
            raise TypeError(f"inherit_env is a list of names, or True; not the one string {inherit_env!r}")
        if inputs is not None and not isinstance(inputs, Mapping) and not callable(inputs):
            raise TypeError(f"inputs are a mapping or a function, not {inputs!r}")
        self._known: Mapping[str, str] = inputs if isinstance(inputs, Mapping) else {}
        self._ask = None if isinstance(inputs, Mapping) else inputs
        self._inherit = inherit_env if isinstance(inherit_env, bool) else tuple(inherit_env)
        import trio  # here, so that who only reads a file does not pay for it

        self._one_by_one = trio.Lock()

    async def expand(self, entry: ServerEntry) -> Expanded:
        """What is to be run of an entry. A checkpoint.

        Raises:
            ExpandError: it cannot be had; a function that fails is named with what it raised.
        """
        import trio

        await trio.lowlevel.checkpoint()
        asks = self._ask is not None
        values: dict[str, str | None] = {}
        while True:
            try:
                return expand(entry, inputs=values or self._known, asking=asks, inherit=self._inherit)
            except InputMissing as missing:
                if self._ask is None or missing.spec.id in values:
                    raise
                wanted = missing
            values[wanted.spec.id] = await self._answer(self._ask, wanted)

    async def _answer(self, ask: Callable[[InputSpec], Any], wanted: InputMissing) -> str | None:
        async with self._one_by_one:
            try:
                value = ask(wanted.spec)
                if inspect.isawaitable(value):
                    value = await value
            except Exception as error:
                said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
                failed = ExpandError(wanted.name, wanted.path, f"could not be supplied: {said}")
                failed.futile = False  # it may answer the next time
                raise failed from None
        answer: str | None = value  # what it is in fact is looked at where it is used
        return answer
