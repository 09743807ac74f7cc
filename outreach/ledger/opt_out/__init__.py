"""The unsubscribe register and inbound messages."""
