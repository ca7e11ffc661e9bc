"""What a tool returned, as each provider takes it back.

Theory of operation. Three pure steps, of which only the last knows shapes:

    CallToolResult ─read─▶ pieces    text, media, structured content, notes       (`pieces`)
    pieces ────────admit─▶ parts     what a provider takes; the rest is a note    (`media`: the table of limits)
    parts ─────────fit───▶ parts     `max_chars` of text in all                   (`cut`)
    parts ─────────shape─▶ JSON      the provider's own                           (`shapes`)

What is left out is always said in a line of text, so that a model does not take half of an answer for all of it. One image
that a provider refuses makes it refuse the whole conversation, from then on: what is doubtful is left out too.
"""

from __future__ import annotations

from .convert import MAX_CHARS, result_for_provider

__all__ = ["MAX_CHARS", "result_for_provider"]
