-- When the provider of an account last reported on a message or call by a callback, to some minutes.
ALTER TABLE accounts ADD COLUMN last_report_at {text};

-- Of earlier reports the workspace's latest callback tells enough: messages since then are those that may have no receipt.
UPDATE accounts SET last_report_at = (
    SELECT MAX(received_at) FROM callbacks WHERE callbacks.workspace_id = accounts.workspace_id
);
