"""The diagnosis of a server: the engine's findings, and those that only the server can make."""
