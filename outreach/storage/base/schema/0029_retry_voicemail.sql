-- Whether a calling campaign calls a voicemail again that got the agent's message.
ALTER TABLE campaigns ADD COLUMN retry_voicemail INTEGER CHECK (retry_voicemail IN (0, 1));
