"""An MCP server that keeps short notes in memory, until its process ends: a server with a state of its own.

Its titles are a resource besides, and a prompt has one note summed up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from ._stdio import BadArguments, Tool, serve
else:  # run by path: this file's folder leads sys.path
    _stdio = import_module("_stdio")
    BadArguments, Tool, serve = _stdio.BadArguments, _stdio.Tool, _stdio.serve

_notes: dict[str, str] = {}


def _there(title: str) -> str:
    if title not in _notes:
        raise BadArguments(f"there is no note {title!r}; there are: {', '.join(_notes) or 'none'}")
    return title


def _write(title: str, text: str) -> str:
    verb = "replaced" if title in _notes else "kept"
    _notes[title] = text
    return f"{verb} {title!r} ({len(text)} characters)"


def _read(title: str) -> str:
    return _notes[_there(title)]


def _titles() -> str:
    return "\n".join(_notes) or "no notes yet"


def _search(text: str) -> str:
    wanted = text.casefold()
    found = [title for title, body in _notes.items() if wanted in title.casefold() or wanted in body.casefold()]
    return "\n".join(found) or f"no note mentions {text!r}"


def _forget(title: str) -> str:
    del _notes[_there(title)]
    return f"forgot {title!r}"


_URI = "note:///titles"


def _list_resources(params: dict[str, Any]) -> dict[str, Any]:
    about = {"uri": _URI, "name": "titles", "title": "Titles", "description": "The titles of all notes, one a line."}
    return {"resources": [{**about, "mimeType": "text/plain"}]}


def _read_resource(params: dict[str, Any]) -> dict[str, Any]:
    if params.get("uri") != _URI:
        raise BadArguments(f"there is no such resource; there is: {_URI}")
    return {"contents": [{"uri": _URI, "mimeType": "text/plain", "text": _titles()}]}


def _list_prompts(params: dict[str, Any]) -> dict[str, Any]:
    title = {"name": "title", "description": "The note's title.", "required": True}
    about = {"name": "summary", "title": "Sum up a note", "description": "Ask for a note in one sentence."}
    return {"prompts": [{**about, "arguments": [title]}]}


def _get_prompt(params: dict[str, Any]) -> dict[str, Any]:
    arguments = params.get("arguments")
    title = arguments.get("title") if isinstance(arguments, dict) else None
    if params.get("name") != "summary" or not isinstance(title, str):
        raise BadArguments("there is only the prompt 'summary', and it needs a 'title'")
    note = _notes.get(title)
    text = f"Sum up the note {title!r} in one sentence" + ("; read it first." if note is None else f":\n\n{note}")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


_ANSWERS = {
    "resources/list": _list_resources,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
}

_TITLE = {"type": "string", "description": "The note's title; it is what tells notes apart."}

TOOLS = (
    Tool(
        "write",
        "Write a note",
        "Keep a note under a title; an older note of that title is replaced.",
        {"title": _TITLE, "text": {"type": "string", "description": "What to remember."}},
        ("title", "text"),
        _write,
        read_only=False,
    ),
    Tool("read", "Read a note", "The text of one note.", {"title": _TITLE}, ("title",), _read),
    Tool("titles", "List notes", "The titles of all notes, oldest first, one a line.", {}, (), _titles),
    Tool(
        "search",
        "Search notes",
        "The titles of the notes that mention a text; capitals do not matter.",
        {"text": {"type": "string", "description": "What to look for, in titles and texts."}},
        ("text",),
        _search,
    ),
    Tool(
        "forget", "Forget a note", "Remove one note for good.", {"title": _TITLE}, ("title",), _forget, read_only=False
    ),
)

if __name__ == "__main__":
    serve("notes", "Notes", "Remembers short notes for as long as this server runs.", TOOLS, _ANSWERS)
