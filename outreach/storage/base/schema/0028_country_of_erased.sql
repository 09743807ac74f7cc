-- Prices may depend on the country of a number. It stays where a person's number is erased, so that a cost stays the same.
ALTER TABLE dispatches ADD COLUMN country TEXT;

ALTER TABLE calls ADD COLUMN country TEXT;
