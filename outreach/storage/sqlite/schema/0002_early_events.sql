-- What an unmatched event tells, as JSON, until a dispatch turns out to have the identifier that it names.
ALTER TABLE callbacks ADD COLUMN report TEXT;

CREATE INDEX callbacks_waiting ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.provider_id')
) WHERE report IS NOT NULL;
