-- Unmatched events by the identifier of the telephony, which is what the answer may name.
CREATE INDEX callbacks_waiting_for_telephony ON callbacks (
    workspace_id, json_extract(report, '$.provider'), json_extract(report, '$.telephony_id')
) WHERE report IS NOT NULL;
