-- Recipients. Their campaign's number was looked up within its workspace: no other workspace's can be named.
-- Indexes are named where the order or a million rows depend on them: a plan must not change with the data.

-- taken --
-- Before many are written: a set that would be refused in part is refused as a whole.
SELECT position FROM recipients WHERE campaign_number = :number AND position BETWEEN :first AND :last

-- insert --
-- Run a thousand times at once: positional, and nothing but what a new recipient can have.
INSERT INTO recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables, status,
    reason, ended_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- known_phones --
-- One search of the index for each number given.
SELECT DISTINCT recipients.phone
FROM json_each(:phones) AS wanted
CROSS JOIN recipients ON recipients.phone = wanted.value
    AND recipients.campaign_number = :number

-- stopped_since --
-- From the few numbers that came onto the register lately to their recipients: never over all recipients.
SELECT {recipients}
FROM unsubscribes
CROSS JOIN recipients INDEXED BY recipients_by_phone ON recipients.phone = unsubscribes.phone
    AND recipients.campaign_number = :number
WHERE unsubscribes.workspace_id = :workspace_id
    AND unsubscribes.created_at >= :since
    AND unsubscribes.scope IN ('all', :channel)

-- due_waiting_for --
-- Of many campaigns, of each in the order of the index `recipients_waiting_for`; what is sorted then are few.
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
-- In the order of the index `recipients_waiting_due`; those that wait for that reason are few, and passed over.
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
-- The first entries of two indexes.
SELECT MIN(due_at) AS due_at FROM (
    SELECT MIN(due_at) AS due_at FROM recipients INDEXED BY recipients_waiting_due
    WHERE status = 'waiting'
        AND due_at IS NOT NULL
        AND campaign_number = :number
    UNION ALL
    SELECT MIN(due_at) AS due_at FROM recipients INDEXED BY recipients_in_flight
    WHERE status IN ('dispatching', 'in_progress', 'unknown')
        AND status = 'in_progress'
        AND due_at IS NOT NULL
        AND campaign_number = :number
)

-- overdue_in_progress --
-- Those whose receipt has been waited for long enough. The second condition is that of the index, word for word.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at <= :now
ORDER BY due_at, position
LIMIT :limit

-- in_progress_after --
-- Those that wait for a receipt for longer than anybody does.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at > :after
ORDER BY due_at, position
LIMIT :limit

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
-- From a number to the few that wait with it, whatever their campaign.
SELECT {recipients}
FROM recipients INDEXED BY recipients_waiting_with
CROSS JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE recipients.status = 'waiting'
    AND recipients.phone = :phone
    AND campaigns.workspace_id = :workspace_id
ORDER BY campaigns.id, recipients.position

-- in_flight --
-- The index holds nothing but these.
SELECT COUNT(*) FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')

-- closable --
-- Two indexes, each read in its order and no further than the limit: a campaign closes in many slices.
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
-- In the order of the key.
SELECT {recipients} FROM recipients
WHERE campaign_number = :number
    AND position > :after
ORDER BY position
LIMIT :limit

-- by_phone --
-- An opt-out ends the recipients with its number. Left alone, SQLite reads along the key for the order's sake.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_phone
WHERE campaign_number = :number
    AND phone = :phone
ORDER BY position

-- without_phone --
-- What was supplied and is no number; nothing but such rows is in the index.
SELECT {recipients} FROM recipients INDEXED BY recipients_without_phone
WHERE campaign_number = :number
    AND phone IS NULL
    AND phone_number = :phone_number
ORDER BY position

-- groups --
-- What became of all of them; no reason sorts before every reason.
SELECT status, reason, COUNT(*) FROM recipients
WHERE campaign_number = :number
GROUP BY status, reason
ORDER BY status, reason

-- recount --
-- `outreach.models.campaign.contribution` as an aggregate; the contract suite holds the two together.
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
