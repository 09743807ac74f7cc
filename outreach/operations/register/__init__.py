"""The unsubscribe register, and the messages that put people on it."""
