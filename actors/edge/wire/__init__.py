"""What a connection runs over: processes, pipes, HTTP, and the protocol on them."""
