-- Who made an API key, and its last use to the hour.
ALTER TABLE api_keys ADD COLUMN made_by {text};

ALTER TABLE api_keys ADD COLUMN last_used_at {text};

UPDATE api_keys SET made_by = (
    SELECT MIN(audit.actor) FROM audit
    WHERE audit.workspace_id = api_keys.workspace_id AND audit.action = 'key.create' AND audit.subject = api_keys.id
);
