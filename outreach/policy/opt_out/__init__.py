"""Whether a message asks for no more messages."""
