-- Campaigns. `loading_until IS NULL` is: published.

-- refs --
-- What rows call campaigns, loading ones too; whose each is is compared by who asks.
SELECT campaigns.number, campaigns.workspace_id, campaigns.id
FROM json_each(:wanted) AS wanted CROSS JOIN campaigns ON campaigns.id = wanted.value

-- refs_by_number --
-- Which campaigns rows that were read belong to.
SELECT campaigns.number, campaigns.workspace_id, campaigns.id
FROM json_each(:wanted) AS wanted CROSS JOIN campaigns ON campaigns.number = wanted.value

-- extend_loading --
-- Its recipients are still coming.
UPDATE campaigns SET loading_until = :loading_until
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- get_loading --
-- One that is loading.
SELECT {campaigns} FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- publish --
-- The one moment from which it is seen, with its counters.
UPDATE campaigns SET
    loading_until = NULL,
    recipients_total = :recipients_total,
    recipients_pending = :recipients_pending,
    recipients_completed = :recipients_completed,
    recipients_successful = :recipients_successful,
    recipients_failed = :recipients_failed,
    recipients_open = :recipients_open
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- leftovers --
-- What a crash left behind while it was loading.
SELECT workspace_id, id FROM campaigns WHERE loading_until < :now ORDER BY loading_until, id

-- loading_number --
-- Its number, when there is something to delete.
SELECT number FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- delete_recipients --
-- A slice, so that no transaction lasts long.
DELETE FROM recipients
WHERE campaign_number = :number AND position IN (
    SELECT position FROM recipients WHERE campaign_number = :number ORDER BY position LIMIT :limit
)

-- delete_trail --
-- What was told of it.
DELETE FROM trail WHERE number IN (
    SELECT number FROM trail INDEXED BY trail_of_campaign WHERE campaign_number = :number ORDER BY number LIMIT :limit
)

-- delete_empty --
-- The campaign itself, once none of its recipients is left, and nothing that was told of it.
DELETE FROM campaigns
WHERE number = :number
    AND NOT EXISTS (SELECT 1 FROM recipients WHERE campaign_number = :number)
    AND NOT EXISTS (SELECT 1 FROM trail WHERE campaign_number = :number)

-- find --
-- The operator names campaigns alone.
SELECT {campaigns} FROM campaigns WHERE id = :campaign_id AND loading_until IS NULL

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

-- list --
-- The list of a workspace: its number, and that of its latest change.
SELECT number, change FROM campaign_lists WHERE workspace_id = :workspace_id

-- count --
-- How many there are, without looking at one of them.
SELECT SUM(count) FROM campaign_counts
WHERE workspace_id = :workspace_id
    AND (:channel IS NULL OR channel = :channel)
    AND (:status IS NULL OR status = :status)

-- page --
-- The numbers of those on a page, newest first; nothing but an index is read.
SELECT number FROM campaigns
WHERE workspace_id = :workspace_id AND channel = :channel AND loading_until IS NULL
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- page_in_status --
-- The same of one status.
SELECT number FROM campaigns
WHERE workspace_id = :workspace_id AND channel = :channel AND status = :status AND loading_until IS NULL
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- page_of_both --
-- The same of both channels, merged.
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id AND channel = 'sms' AND loading_until IS NULL
UNION ALL
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id AND channel = 'call' AND loading_until IS NULL
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- page_of_both_in_status --
-- The same of both channels and one status.
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id AND channel = 'sms' AND status = :status AND loading_until IS NULL
UNION ALL
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id AND channel = 'call' AND status = :status AND loading_until IS NULL
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- found --
-- The numbers of all whose name holds a text, newest first; `phrase` is what the index knows of it. Names are numbered
-- from those of one list to those of the next, and `instr`, unlike LIKE, takes every character as it is.
SELECT campaigns.number
FROM campaign_names CROSS JOIN campaigns ON campaigns.number = campaign_names.rowid - (:list << 38)
WHERE campaign_names MATCH :phrase
    AND campaign_names.rowid BETWEEN :list << 38 AND ((:list + 1) << 38) - 1
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (:channel IS NULL OR channel = :channel)
    AND (:status IS NULL OR status = :status)
    AND instr(name_folded, :search) > 0
ORDER BY created_at DESC, id DESC

-- names_with --
-- How many names hold a text as far as the index knows it, counted up to a limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM campaign_names
    WHERE campaign_names MATCH :phrase AND rowid BETWEEN :list << 38 AND ((:list + 1) << 38) - 1
    LIMIT :limit
)

-- found_by_looking --
-- What `found` finds, by a look at every name, in the order of an index: for a text too short for the index of names, or
-- one that so many names hold that this is faster.
SELECT number FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel = :channel
    AND loading_until IS NULL
    AND (:status IS NULL OR status = :status)
    AND instr(name_folded, :search) > 0
ORDER BY created_at DESC, id DESC

-- found_of_both_by_looking --
-- The same of both channels, merged.
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel = 'sms'
    AND loading_until IS NULL
    AND (:status IS NULL OR status = :status)
    AND instr(name_folded, :search) > 0
UNION ALL
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel = 'call'
    AND loading_until IS NULL
    AND (:status IS NULL OR status = :status)
    AND instr(name_folded, :search) > 0
ORDER BY created_at DESC, id DESC

-- of_numbers --
-- Those with these numbers; whose they are is compared all the same.
SELECT {campaigns} FROM json_each(:numbers) AS wanted CROSS JOIN campaigns ON campaigns.number = wanted.value
WHERE workspace_id = :workspace_id AND loading_until IS NULL
ORDER BY campaigns.created_at DESC, campaigns.id DESC

-- in_status --
-- What a dispatcher starts with, and what a stop has to stop.
SELECT {campaigns} FROM campaigns
WHERE status IN (SELECT value FROM json_each(:statuses))
    AND loading_until IS NULL
    AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
ORDER BY created_at, id

-- count_in_status --
-- How many are in these statuses, without reading one of them.
SELECT status, COUNT(*) FROM campaigns
WHERE status IN (SELECT value FROM json_each(:statuses))
    AND loading_until IS NULL
    AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
GROUP BY status

-- paused_by_engine --
-- What nobody asked to pause: somebody has to look at it.
SELECT {campaigns} FROM campaigns
WHERE status = 'paused'
    AND loading_until IS NULL
    AND pause_reason <> 'operator'
    AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
ORDER BY created_at, id
LIMIT :limit
