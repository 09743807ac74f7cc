-- Whether managers may take personal data out.
ALTER TABLE workspaces ADD COLUMN managers_export {integer} NOT NULL DEFAULT 1 CHECK (managers_export IN (0, 1));
