-- Campaigns that exist send their texts as before.
ALTER TABLE campaigns ADD COLUMN replace_characters {integer} CHECK (replace_characters IN (0, 1));

UPDATE campaigns SET replace_characters = 0 WHERE channel = 'sms';
