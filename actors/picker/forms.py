"""The form of a new server: typing, moving between its fields, and what is wrong with what was typed."""

from __future__ import annotations

import re
import shlex

from attrs import evolve

from ..model.plain import label
from .state import State, Step, send
from .values import Add, AddForm

__all__ = ["parse_target", "paste_into", "submit", "to_next", "to_other", "type_into"]

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_URL = re.compile(r"https?://", re.IGNORECASE)

Target = tuple[str | None, tuple[str, ...], dict[str, str], str | None]
"""Command, arguments, variables; or URL."""


def parse_target(text: str) -> Target:
    """What a line means: a URL, or a command line as a POSIX shell splits it, with leading ``NAME=value``.

    Raises:
        ValueError: it is empty, a quote or a backslash is open, or there is no command; one line.
    """
    text = text.strip()
    if not text:
        raise ValueError("type the command line that starts it, or its URL")
    if _URL.match(text):
        if len(text.split()) > 1:
            raise ValueError("a URL has no blanks in it")
        if not _URL.sub("", text, count=1):
            raise ValueError("the URL names no host")
        return None, (), {}, text
    try:
        words = shlex.split(text)
    except ValueError as error:
        where = "a quote is not closed" if "quotation" in str(error) else "there is nothing after the last backslash"
        raise ValueError(f"the command line cannot be read: {where}") from None
    env: dict[str, str] = {}
    while words and (found := _VARIABLE.fullmatch(words[0])) is not None:
        env[found[1]] = found[2]
        del words[0]
    if not words or not words[0]:
        raise ValueError("there is no command in it")
    return words[0], tuple(words[1:]), env, None


def _refusal(state: State, name: str) -> str | None:
    if not name:
        return "give it a name"
    if state.snapshot.model.server(name) is not None:
        return f"there is a server {label(name)} already"
    return None


def submit(state: State, form: AddForm) -> Step:
    """Add what was typed, or say what is wrong with it, and go to the field that it is wrong in."""
    if form.sent is not None:
        return state, ()
    name = form.name.text.strip()
    if (wrong := _refusal(state, name)) is not None:
        return evolve(state, dialog=evolve(form, field=0, error=wrong)), ()
    try:
        command, args, env, url = parse_target(form.what.text)
    except ValueError as error:
        return evolve(state, dialog=evolve(form, field=1, error=str(error))), ()
    return send(
        evolve(state, dialog=evolve(form, error=None, sent=state.next_id)),
        Add(state.next_id, name, command, args, env, url),
    )


def to_other(state: State, form: AddForm) -> Step:
    """To the other field."""
    return evolve(state, dialog=evolve(form, field=0 if form.field else 1)), ()


def to_next(state: State, form: AddForm) -> Step:
    """To the next field; from the last one, `submit`."""
    return submit(state, form) if form.field else to_other(state, form)


def paste_into(state: State, form: AddForm, text: str) -> Step:
    """A text that is pasted into the field. Nothing while the server is being added."""
    if form.sent is not None:
        return state, ()
    line = (form.what if form.field else form.name).pasted(text)
    after = evolve(form, what=line, error=None) if form.field else evolve(form, name=line, error=None)
    return evolve(state, dialog=after), ()


def type_into(state: State, form: AddForm, key: str) -> Step:
    """A key that is text, or edits text, in the field. Nothing while the server is being added."""
    line = form.what if form.field else form.name
    typed = line.typed(key) if form.sent is None else None
    if typed is None:
        return state, ()
    after = evolve(form, what=typed, error=None) if form.field else evolve(form, name=typed, error=None)
    return evolve(state, dialog=after), ()
