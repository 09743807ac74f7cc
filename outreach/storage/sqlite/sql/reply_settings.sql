-- How keywords are answered, one row a workspace at most.

-- get --
-- No row means that nothing was ever changed.
SELECT * FROM reply_settings WHERE workspace_id = :workspace_id

-- put --
-- The settings, over those that are there.
INSERT INTO reply_settings (workspace_id, enabled, stop_text, start_text, help_text, help_when_opted_out)
VALUES (:workspace_id, :enabled, :stop_text, :start_text, :help_text, :help_when_opted_out)
ON CONFLICT (workspace_id) DO UPDATE SET
    enabled = excluded.enabled,
    stop_text = excluded.stop_text,
    start_text = excluded.start_text,
    help_text = excluded.help_text,
    help_when_opted_out = excluded.help_when_opted_out
