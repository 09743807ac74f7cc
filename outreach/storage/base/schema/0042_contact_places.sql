-- Where contacts are, as far as their lists say: of those that exist only the number tells it.
ALTER TABLE recipients ADD COLUMN time_zone {text};
ALTER TABLE recipients ADD COLUMN us_place {text};

-- Contact hours of countries and states, as JSON.
ALTER TABLE workspaces ADD COLUMN narrower_hours {text} NOT NULL DEFAULT '[]';
