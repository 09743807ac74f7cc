-- What each key may do. Keys from before may do what they could: the operations of the interface document.
ALTER TABLE api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT '["send"]';
