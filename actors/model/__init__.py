"""The pure ring: values and pure functions. No trio, no mcp, no file, no clock."""
