-- How calling campaigns try again, one row a workspace at most.

-- get --
-- No row means that nothing was ever changed.
SELECT * FROM call_settings WHERE workspace_id = :workspace_id

-- put --
-- The settings, over those that are there.
INSERT INTO call_settings (workspace_id, retry_max_attempts, retry_delay_minutes)
VALUES (:workspace_id, :retry_max_attempts, :retry_delay_minutes)
ON CONFLICT (workspace_id) DO UPDATE SET
    retry_max_attempts = excluded.retry_max_attempts, retry_delay_minutes = excluded.retry_delay_minutes
