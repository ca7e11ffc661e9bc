"""Servers over HTTP: streamable HTTP, and the older HTTP+SSE transport, as wires like any other."""
