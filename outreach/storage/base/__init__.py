"""What storages share: queued jobs, group commit, migrations, progress of long work."""
