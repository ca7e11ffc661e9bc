"""For tests of programs that embed a host: servers that do what a script says, in memory and in virtual time."""

from .scripted import Script, ScriptedConnection, ScriptedServers

__all__ = ["Script", "ScriptedConnection", "ScriptedServers"]
