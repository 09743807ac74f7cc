-- Between which moments the wall clock is known to have run without a step, by the holder of the lease.
ALTER TABLE lease ADD COLUMN steady_since TEXT;
ALTER TABLE lease ADD COLUMN steady_until TEXT;
