-- How much of what all workers together may have on its way each of them may have.
ALTER TABLE workers ADD COLUMN intent_permits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN request_permits INTEGER NOT NULL DEFAULT 0;
