-- SMS settings, one row a workspace at most.

-- get --
-- No row means that nothing was ever changed.
SELECT * FROM sms_settings WHERE workspace_id = :workspace_id

-- put --
-- The settings, over those that are there.
INSERT INTO sms_settings (
    workspace_id, footer_enabled, footer_text, max_segments, retry_enabled, retry_max_attempts, retry_delay_minutes,
    custom_variables, revision
) VALUES (
    :workspace_id, :footer_enabled, :footer_text, :max_segments, :retry_enabled, :retry_max_attempts,
    :retry_delay_minutes, :custom_variables, :revision
)
ON CONFLICT (workspace_id) DO UPDATE SET
    footer_enabled = excluded.footer_enabled,
    footer_text = excluded.footer_text,
    max_segments = excluded.max_segments,
    retry_enabled = excluded.retry_enabled,
    retry_max_attempts = excluded.retry_max_attempts,
    retry_delay_minutes = excluded.retry_delay_minutes,
    custom_variables = excluded.custom_variables,
    revision = excluded.revision
