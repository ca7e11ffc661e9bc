"""Logins at remote servers with OAuth 2.1: found out, had, kept, renewed; nothing of them is shown."""
