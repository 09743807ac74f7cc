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

-- page_of_both --
-- The same for both channels, merged.
(
    SELECT number, created_at, id FROM campaigns
    WHERE workspace_id = :workspace_id
        AND channel = 'sms'
        AND loading_until IS NULL
        AND (created_at, id) < (:after_at, :after_id)
    ORDER BY created_at DESC, id DESC
    LIMIT :limit::bigint + :offset::bigint
)
UNION ALL
(
    SELECT number, created_at, id FROM campaigns
    WHERE workspace_id = :workspace_id
        AND channel = 'call'
        AND loading_until IS NULL
        AND (created_at, id) < (:after_at, :after_id)
    ORDER BY created_at DESC, id DESC
    LIMIT :limit::bigint + :offset::bigint
)
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- page_of_both_in_status --
-- The same for both channels and one status.
(
    SELECT number, created_at, id FROM campaigns
    WHERE workspace_id = :workspace_id
        AND channel = 'sms'
        AND status = :status
        AND loading_until IS NULL
        AND (created_at, id) < (:after_at, :after_id)
    ORDER BY created_at DESC, id DESC
    LIMIT :limit::bigint + :offset::bigint
)
UNION ALL
(
    SELECT number, created_at, id FROM campaigns
    WHERE workspace_id = :workspace_id
        AND channel = 'call'
        AND status = :status
        AND loading_until IS NULL
        AND (created_at, id) < (:after_at, :after_id)
    ORDER BY created_at DESC, id DESC
    LIMIT :limit::bigint + :offset::bigint
)
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

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
    AND (:channel::text IS NULL OR channel = :channel::text)
    AND (:status::text IS NULL OR status = :status::text)
    AND strpos(name_folded, :search) > 0
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
