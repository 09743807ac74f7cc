-- What may fill the placeholders of a campaign's text, as JSON; null where it is not known.
ALTER TABLE campaigns ADD COLUMN variable_names TEXT;
