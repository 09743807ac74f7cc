-- When the provider of an account last reported on a message or call by a callback, to some minutes.
ALTER TABLE accounts ADD COLUMN last_report_at {text};
