-- add_counters --
-- In the transaction that changes the recipients, so that they always equal a recount.
UPDATE campaigns SET
    recipients_total = recipients_total + ?,
    recipients_pending = recipients_pending + ?,
    recipients_completed = recipients_completed + ?,
    recipients_successful = recipients_successful + ?,
    recipients_failed = recipients_failed + ?,
    recipients_open = recipients_open + ?
WHERE number = ?

-- found --
-- The numbers of all whose name contains a text, newest first; `phrase` is the query of the index. Names are numbered
-- by list, and `instr`, unlike LIKE, takes every character literally.
SELECT campaigns.number, (created_at, id) < (:after_at, :after_id) AS is_behind
FROM campaign_names CROSS JOIN campaigns ON campaigns.number = campaign_names.rowid - (:list << 38)
WHERE campaign_names MATCH :phrase
    AND campaign_names.rowid BETWEEN :list << 38 AND ((:list + 1) << 38) - 1
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND channel = :channel  -- if given
{filters}
ORDER BY created_at DESC, id DESC

-- names_with --
-- How many names match by the index, counted up to a limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM campaign_names
    WHERE campaign_names MATCH :phrase AND rowid BETWEEN :list << 38 AND ((:list + 1) << 38) - 1
    LIMIT :limit
)

-- of_numbers --
-- Campaigns by number; their workspace is compared all the same.
SELECT {campaigns} FROM json_each(:numbers) AS wanted CROSS JOIN campaigns ON campaigns.number = wanted.value
WHERE workspace_id = :workspace_id AND loading_until IS NULL
ORDER BY campaigns.created_at DESC, campaigns.id DESC
