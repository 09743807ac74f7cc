-- callbacks_of_person --
-- The same for events, which hold the number in the provider's own notation.
SELECT rowid FROM callbacks
WHERE workspace_id = :workspace_id AND instr(body, CAST(:digits AS BLOB)) > 0
LIMIT :limit

-- person_in_callbacks --
-- The event stays known, so that it is not taken for a new one.
UPDATE callbacks SET body = x'', report = NULL
WHERE workspace_id = :workspace_id AND rowid IN (SELECT value FROM json_each(:ids))
