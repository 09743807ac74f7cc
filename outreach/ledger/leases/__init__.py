"""Who works: leases, workers, what each of them has claimed, and steps of the clock."""
