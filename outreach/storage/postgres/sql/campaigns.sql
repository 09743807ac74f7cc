-- add_counters --
-- In the transaction that changes the recipients, so that they always equal a recount.
UPDATE campaigns SET
    recipients_total = recipients_total + added.total,
    recipients_pending = recipients_pending + added.pending,
    recipients_completed = recipients_completed + added.completed,
    recipients_successful = recipients_successful + added.successful,
    recipients_failed = recipients_failed + added.failed,
    recipients_open = recipients_open + added.opened
FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
    AS added (total, pending, completed, successful, failed, opened, number)
WHERE campaigns.number = added.number

-- found --
-- The numbers of all whose name contains a text, newest first; `phrase` is the text in quotes. Names are indexed by list,
-- and `strpos`, unlike LIKE, takes every character literally.
SELECT campaigns.number, (created_at, id) < (:after_at, :after_id) AS is_behind
FROM names_with(:list, :phrase, NULL) AS names (number)
CROSS JOIN LATERAL (
    SELECT * FROM campaigns WHERE campaigns.number = names.number OFFSET 0
) AS campaigns
WHERE campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND channel = :channel  -- if given
{filters}
ORDER BY created_at DESC, id DESC

-- names_with --
-- How many names match by the index, counted up to a limit.
SELECT COUNT(*) FROM names_with(:list, :phrase, :limit) AS names (number)

-- of_numbers --
-- Campaigns by number; their workspace is compared all the same.
SELECT {campaigns}
FROM json_array_elements_text(:numbers::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM campaigns WHERE campaigns.number = wanted.value::bigint OFFSET 0
) AS campaigns
WHERE workspace_id = :workspace_id AND loading_until IS NULL
ORDER BY campaigns.created_at DESC, campaigns.id DESC
