-- Recipients. Their campaign's number was looked up within its workspace. Indexes are named where the order or a
-- million rows depend on them: a plan must not change with the data.

-- taken --
-- Checked before writing, so that a set is refused as a whole.
SELECT position FROM recipients WHERE campaign_number = :number AND position BETWEEN :first AND :last

-- known_phones --
-- One index search for each number.
SELECT wanted.value AS phone FROM {each:phones}
WHERE EXISTS (
    SELECT 1 FROM recipients
    WHERE phone = wanted.value AND campaign_number = :number
    {apart}
)

-- with_phones --
-- From a few numbers to their recipients: never over all recipients.
SELECT {recipients}
FROM {each:phones}
{join} recipients INDEXED BY recipients_by_phone ON recipients.phone = wanted.value
    AND recipients.campaign_number = :number

-- first_rows --
-- A slice of a hidden campaign, in the order of the key.
SELECT position, phone, status FROM recipients WHERE campaign_number = :number ORDER BY position LIMIT :limit

-- skip_duplicates --
-- A slice whose people another load has added meanwhile.
UPDATE recipients SET status = 'skipped', reason = 'duplicate', ended_at = :now
WHERE campaign_number = :number AND position {in} SELECT wanted.value::bigint FROM {each:positions} {end}

-- move --
-- A slice, in its order, behind the last position of another campaign.
UPDATE recipients SET campaign_number = :target, position = position + :offset, added_at = :now
WHERE campaign_number = :number AND position <= :last

-- mark_added --
-- What was just written behind the last position.
UPDATE recipients SET added_at = :now WHERE campaign_number = :number AND position >= :first

-- next_due --
-- For many campaigns, each the first entries of two indexes.
SELECT
    wanted.value::bigint AS number,
    (
        SELECT MIN(due_at) FROM recipients INDEXED BY recipients_waiting_due
        WHERE status = 'waiting'
            AND due_at IS NOT NULL
            AND campaign_number = wanted.value::bigint
    ) AS waiting,
    (
        SELECT MIN(due_at) FROM recipients INDEXED BY recipients_in_flight
        WHERE status IN ('dispatching', 'in_progress', 'unknown')
            AND status = 'in_progress'
            AND due_at IS NOT NULL
            AND campaign_number = wanted.value::bigint
    ) AS in_progress
FROM {each:wanted}

-- overdue_in_progress --
-- Whose receipt wait has ended. The second condition is that of the index, word for word.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at <= :now
ORDER BY due_at NULLS FIRST, position
LIMIT :limit

-- in_progress_after --
-- Whose receipt wait is longer than any wait may be.
SELECT {recipients} FROM recipients INDEXED BY recipients_in_flight
WHERE campaign_number = :number
    AND status IN ('dispatching', 'in_progress', 'unknown')
    AND status = 'in_progress'
    AND due_at > :after
ORDER BY due_at NULLS FIRST, position
LIMIT :limit

-- waiting_beyond --
-- For many campaigns and reasons, each with a moment: whether the last entry of an index lies after it.
SELECT DISTINCT {part:0}::bigint AS number
FROM {each_row:wanted}
WHERE EXISTS (
    SELECT 1 FROM recipients INDEXED BY recipients_waiting_for
    WHERE campaign_number = {part:0}::bigint
        AND status = 'waiting'
        AND reason = {part:1}
        AND due_at > {part:2}
)

-- in_progress_beyond --
-- For many campaigns: whether the last entry of an index lies after a moment.
SELECT wanted.value::bigint AS number
FROM {each:wanted}
WHERE (
    SELECT MAX(due_at) FROM recipients INDEXED BY recipients_in_flight
    WHERE campaign_number = wanted.value::bigint
        AND status IN ('dispatching', 'in_progress', 'unknown')
        AND status = 'in_progress'
) > :after

-- postponed --
-- In the order of the index `recipients_waiting_for`.
SELECT {recipients} FROM recipients INDEXED BY recipients_waiting_for
WHERE campaign_number = :number
    AND status = 'waiting'
    AND reason = :reason
    AND due_at > :now
ORDER BY due_at NULLS FIRST, position
LIMIT :limit

-- count_postponed --
-- The same counted in the index, up to a moment and a limit.
SELECT COUNT(*) FROM (
    SELECT 1 FROM recipients INDEXED BY recipients_waiting_for
    WHERE campaign_number = :number
        AND status = 'waiting'
        AND reason {in} {values:reasons} {end}
        AND due_at > :now
        AND (:until::text IS NULL OR due_at <= :until::text)
    LIMIT :limit
) AS postponed

-- first_postponed --
-- The first entry of an index after a moment.
SELECT {recipients} FROM recipients INDEXED BY recipients_waiting_due
WHERE status = 'waiting'
    AND campaign_number = :number
    AND due_at > :now
ORDER BY due_at NULLS FIRST, position
LIMIT 1

-- count_due --
-- Those whose turn it is, counted in two indexes up to a limit.
SELECT COUNT(*) FROM (
    SELECT * FROM (
        SELECT position FROM recipients INDEXED BY recipients_pending
        WHERE status = 'pending'
            AND campaign_number = :number
        LIMIT :limit
    ) AS pending
    UNION ALL
    SELECT * FROM (
        SELECT position FROM recipients INDEXED BY recipients_waiting_due
        WHERE status = 'waiting'
            AND campaign_number = :number
            AND due_at <= :now
        LIMIT :limit
    ) AS waiting
    LIMIT :limit
) AS due

-- waiting_for_phone --
-- From a number to the few that wait with it, in any campaign.
SELECT {recipients}
FROM recipients INDEXED BY recipients_waiting_with
{join} campaigns ON campaigns.number = recipients.campaign_number
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
) AS pending
UNION ALL
SELECT * FROM (
    SELECT {recipients} FROM recipients INDEXED BY recipients_waiting_due
    WHERE status = 'waiting'
        AND campaign_number = :number
    ORDER BY due_at NULLS FIRST, position
    LIMIT :limit
) AS waiting
LIMIT :limit

-- page --
-- In the order of the key, whatever is asked for: no index holds the states that have ended.
SELECT {recipients} FROM recipients
WHERE campaign_number = :number
    AND position > :after
    AND (:status::text IS NULL OR status = :status::text)
    AND (:reason::text IS NULL OR reason = :reason::text)
ORDER BY position
LIMIT :limit

-- contacts --
-- For a look at all contacts: no more columns than it needs, in their order in `StoredContact`.
SELECT
    position, phone_number, phone, first_name, last_name, email, company, custom_variables, status, reason, due_at, step,
    attempts, dispatched, time_zone, us_place
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
    AND {same:phone_number|:phone_number}
ORDER BY position

-- with_external_id_in --
-- The same within one campaign: one search in the index.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_external_id
WHERE {same:recipients.external_id|:external_id}
    AND recipients.campaign_number = :number
ORDER BY recipients.position
LIMIT :limit

-- external_ids --
-- By the key, one search for each recipient of a stretch of the trail.
SELECT recipients.campaign_number, recipients.position, recipients.external_id
FROM {each_row:wanted}
{join} recipients ON recipients.campaign_number = {part:0}::bigint
    AND recipients.position = {part:1}::bigint
WHERE recipients.external_id IS NOT NULL

-- at_steps --
-- Those past the first step, of the whole campaign; a contact in a wait is at the step after it.
SELECT step, reason {is} 'flow_wait', COUNT(*) FROM recipients
WHERE campaign_number = :number
    AND step > 0
    AND status IN ('waiting', 'dispatching', 'in_progress', 'unknown')
GROUP BY 1, 2

-- page_of_few --
-- Those that ended in a state in which few did, found in an index, whose condition stands here word for word, and sorted.
SELECT {recipients} FROM recipients INDEXED BY recipients_not_plain
WHERE campaign_number = :number
    AND status = :status
    AND status <> 'pending'
    AND status <> 'waiting'
    AND status <> 'dispatching'
    AND status <> 'in_progress'
    AND status <> 'unknown'
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0)
    AND (:reason::text IS NULL OR reason = :reason::text)
    AND position > :after
ORDER BY position
LIMIT :limit

-- count_waiting --
-- From the active campaigns to those of their recipients that wait, up to a limit; only indexes are read.
SELECT reason, COUNT(*) FROM (
    SELECT recipients.reason AS reason
    FROM campaigns INDEXED BY campaigns_in_status
    {join} recipients INDEXED BY recipients_waiting_for ON recipients.campaign_number = campaigns.number
        AND recipients.status = 'waiting'
    WHERE campaigns.status = 'active' AND campaigns.loading_until IS NULL
    LIMIT :limit
) AS waiting
GROUP BY reason
ORDER BY reason NULLS FIRST

-- recount --
-- `outreach.models.campaign.contribution` as an aggregate; the contract suite compares both.
SELECT
    COUNT(*) AS recipients_total,
    COUNT(*) FILTER (WHERE is_open AND dispatched = 0 AND attempts = 0) AS recipients_pending,
    COUNT(*) FILTER (WHERE NOT is_open AND dispatched = 1) AS recipients_completed,
    COUNT(*) FILTER (WHERE successful = 1) AS recipients_successful,
    COUNT(*) FILTER (WHERE status = 'failed') AS recipients_failed,
    COUNT(*) FILTER (WHERE is_open) AS recipients_open
FROM (
    SELECT
        status,
        dispatched,
        attempts,
        successful,
        status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown') AS is_open
    FROM recipients
    WHERE campaign_number = :number
) AS counted
