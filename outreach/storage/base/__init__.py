"""What storages share: queued jobs, group commit, files of named queries, progress of long work."""
