"""Recognising opt-outs, opt-ins and requests for help in messages."""
