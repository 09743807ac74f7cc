"""Stand-ins that play providers on this machine, so that going live can be rehearsed (docs/rehearsing.md).

A module for each provider: it answers requests as the provider's API does, and makes the callbacks that follow, signed
with the credentials that it has invented.
"""
