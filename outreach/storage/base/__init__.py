"""Shared parts of the storages: queued jobs, group commit, migrations, progress of long work."""
