-- Recipients. Their campaign's number was looked up within its workspace. Indexes are named where the order or a
-- million rows depend on them: a plan must not change with the data.

-- taken --
-- Checked before writing, so that a set is refused as a whole.
SELECT position FROM recipients WHERE campaign_number = :number AND position BETWEEN :first AND :last

-- insert --
-- Run a thousand times at once: positional, with only the columns of a new recipient.
INSERT INTO recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables,
    external_id, status, reason, ended_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- known_phones --
-- One index search for each number.
SELECT DISTINCT recipients.phone
FROM json_each(:phones) AS wanted
CROSS JOIN recipients ON recipients.phone = wanted.value
    AND recipients.campaign_number = :number

-- with_phones --
-- From a few numbers to their recipients: never over all recipients.
SELECT {recipients}
FROM json_each(:phones) AS wanted
CROSS JOIN recipients INDEXED BY recipients_by_phone ON recipients.phone = wanted.value
    AND recipients.campaign_number = :number

-- due_waiting_for --
-- For many campaigns, each in the order of the index `recipients_waiting_for`; few are sorted.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_waiting_for
    WHERE due.campaign_number = wanted.value
        AND due.status = 'waiting'
        AND due.reason = :reason
        AND due.due_at <= :now
    ORDER BY due.due_at, due.position
    LIMIT :limit
)
ORDER BY recipients.due_at, recipients.position

-- due_waiting_else --
-- In the order of the index `recipients_waiting_due`; the few that wait for that reason are skipped.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_waiting_due
    WHERE due.campaign_number = wanted.value
        AND due.status = 'waiting'
        AND due.reason IS NOT :reason
        AND due.due_at <= :now
    ORDER BY due.due_at, due.position
    LIMIT :limit
)
ORDER BY recipients.due_at, recipients.position

-- due_pending --
-- In the order of the index `recipients_pending`.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_pending
    WHERE due.campaign_number = wanted.value
        AND due.status = 'pending'
    ORDER BY due.position
    LIMIT :limit
)
ORDER BY recipients.position

-- next_due --
-- For many campaigns, each the first entries of two indexes.
SELECT
    wanted.value AS number,
    (
        SELECT MIN(due_at) FROM recipients INDEXED BY recipients_waiting_due
        WHERE status = 'waiting'
            AND due_at IS NOT NULL
            AND campaign_number = wanted.value
    ) AS waiting,
    (
        SELECT MIN(due_at) FROM recipients INDEXED BY recipients_in_flight
        WHERE status IN ('dispatching', 'in_progress', 'unknown')
            AND status = 'in_progress'
            AND due_at IS NOT NULL
            AND campaign_number = wanted.value
    ) AS in_progress
FROM json_each(:wanted) AS wanted

-- overdue_in_progress --
-- Whose receipt wait has ended. The second condition is that of the index, word for word.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at <= :now
ORDER BY due_at, position
LIMIT :limit

-- in_progress_after --
-- Whose receipt wait is longer than any wait may be.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at > :after
ORDER BY due_at, position
LIMIT :limit

-- waiting_beyond --
-- For many campaigns and reasons, each with a moment: whether the last entry of an index lies after it.
SELECT DISTINCT json_extract(wanted.value, '$[0]') AS number
FROM json_each(:wanted) AS wanted
WHERE EXISTS (
    SELECT 1 FROM recipients INDEXED BY recipients_waiting_for
    WHERE campaign_number = json_extract(wanted.value, '$[0]')
        AND status = 'waiting'
        AND reason = json_extract(wanted.value, '$[1]')
        AND due_at > json_extract(wanted.value, '$[2]')
)

-- in_progress_beyond --
-- For many campaigns: whether the last entry of an index lies after a moment.
SELECT wanted.value AS number
FROM json_each(:wanted) AS wanted
WHERE EXISTS (
    SELECT 1 FROM recipients INDEXED BY recipients_in_flight
    WHERE campaign_number = wanted.value
        AND status IN ('dispatching', 'in_progress', 'unknown')
        AND status = 'in_progress'
        AND due_at > :after
)

-- postponed --
-- In the order of the index `recipients_waiting_for`.
SELECT {recipients} FROM recipients INDEXED BY recipients_waiting_for
WHERE campaign_number = :number
    AND status = 'waiting'
    AND reason = :reason
    AND due_at > :now
ORDER BY due_at, position
LIMIT :limit

-- waiting_for_phone --
-- From a number to the few that wait with it, in any campaign.
SELECT {recipients}
FROM recipients INDEXED BY recipients_waiting_with
CROSS JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE recipients.status = 'waiting'
    AND recipients.phone = :phone
    AND campaigns.workspace_id = :workspace_id
ORDER BY campaigns.id, recipients.position

-- in_flight --
-- The index holds only these.
SELECT COUNT(*) FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')

-- closable --
-- Two indexes, each read in order and only up to the limit: a campaign closes in many slices.
SELECT * FROM (
    SELECT {recipients} FROM recipients INDEXED BY recipients_pending
    WHERE status = 'pending'
        AND campaign_number = :number
    ORDER BY position
    LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT {recipients} FROM recipients INDEXED BY recipients_waiting_due
    WHERE status = 'waiting'
        AND campaign_number = :number
    ORDER BY due_at, position
    LIMIT :limit
)
LIMIT :limit

-- page --
-- In the order of the key, whatever is asked for: no index holds the states that have ended.
SELECT {recipients} FROM recipients
WHERE campaign_number = :number
    AND position > :after
    AND (:status IS NULL OR status = :status)
    AND (:reason IS NULL OR reason = :reason)
ORDER BY position
LIMIT :limit

-- contacts --
-- For a look at all contacts: no more columns than it needs, in their order in `StoredContact`.
SELECT
    position, phone_number, phone, first_name, last_name, email, company, custom_variables, status, reason, due_at, step,
    attempts, dispatched
FROM recipients
WHERE campaign_number = :number AND position > :after
ORDER BY position
LIMIT :limit

-- by_phone --
-- For opt-outs. Without the named index SQLite would scan the key for its order.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_phone
WHERE campaign_number = :number
    AND phone = :phone
ORDER BY position

-- without_phone --
-- Supplied texts that are not numbers; the index holds only these.
SELECT {recipients} FROM recipients INDEXED BY recipients_without_phone
WHERE campaign_number = :number
    AND phone IS NULL
    AND phone_number = :phone_number
ORDER BY position

-- with_external_id --
-- From the application's id to the few of the workspace that have it, the newest campaign first.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_external_id
CROSS JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE recipients.external_id = :external_id
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (
        campaigns.created_at < :after_at
        OR campaigns.created_at = :after_at AND (campaigns.id, recipients.position) > (:after_id, :after_position)
    )
ORDER BY campaigns.created_at DESC, campaigns.id, recipients.position
LIMIT :limit

-- with_external_id_in --
-- The same within one campaign: one search in the index.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_external_id
WHERE recipients.external_id = :external_id
    AND recipients.campaign_number = :number
ORDER BY recipients.position
LIMIT :limit

-- external_ids --
-- By the key, one search for each recipient of a stretch of the trail.
SELECT recipients.campaign_number, recipients.position, recipients.external_id
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = json_extract(wanted.value, '$[0]')
    AND recipients.position = json_extract(wanted.value, '$[1]')
WHERE recipients.external_id IS NOT NULL

-- groups --
-- The states of all recipients; no reason sorts before every reason.
SELECT status, reason, COUNT(*) FROM recipients
WHERE campaign_number = :number
GROUP BY status, reason
ORDER BY status, reason

-- count_waiting --
-- From the active campaigns to those of their recipients that wait, up to a limit; only indexes are read.
SELECT reason, COUNT(*) FROM (
    SELECT recipients.reason AS reason
    FROM campaigns INDEXED BY campaigns_in_status
    CROSS JOIN recipients INDEXED BY recipients_waiting_for ON recipients.campaign_number = campaigns.number
        AND recipients.status = 'waiting'
    WHERE campaigns.status = 'active' AND campaigns.loading_until IS NULL
    LIMIT :limit
)
GROUP BY reason
ORDER BY reason

-- recount --
-- `outreach.models.campaign.contribution` as an aggregate; the contract suite compares both.
SELECT
    COUNT(*) AS recipients_total,
    COALESCE(SUM(is_open AND NOT dispatched AND attempts = 0), 0) AS recipients_pending,
    COALESCE(SUM(NOT is_open AND dispatched), 0) AS recipients_completed,
    COALESCE(SUM(successful), 0) AS recipients_successful,
    COALESCE(SUM(status = 'failed'), 0) AS recipients_failed,
    COALESCE(SUM(is_open), 0) AS recipients_open
FROM (
    SELECT
        status,
        dispatched,
        attempts,
        successful,
        status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown') AS is_open
    FROM recipients
    WHERE campaign_number = :number
)
