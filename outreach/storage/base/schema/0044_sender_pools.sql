-- Campaigns that exist send from one number, as before.
ALTER TABLE campaigns ADD COLUMN from_numbers {text} NOT NULL DEFAULT '[]';
