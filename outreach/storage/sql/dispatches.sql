-- The ledger.

-- find --
-- For operators' commands, which name dispatches alone.
SELECT {dispatches} FROM dispatches WHERE id = :dispatch_id

-- by_provider_id --
-- For callbacks. Providers promise unique identifiers; if one were reused, the newest counts.
SELECT {dispatches}
FROM {each_row:wanted}
{join} dispatches INDEXED BY dispatches_by_provider_id
    ON {same:dispatches.provider_id|{part:2}}
    AND dispatches.provider = {part:1}
    AND dispatches.workspace_id = {part:0}
ORDER BY dispatches.created_at DESC, dispatches.id DESC

-- with_provider_id --
-- Without a workspace, because an answer with the identifier of another tenant's request must be found out. What is found
-- is compared, and nothing of it is shown.
SELECT {dispatches}
FROM {each_row:wanted}
{join} dispatches INDEXED BY dispatches_by_provider_id
    ON {same:dispatches.provider_id|{part:1}}
    AND dispatches.provider = {part:0}
ORDER BY dispatches.created_at DESC, dispatches.id DESC

-- similar --
-- Other possible owners of a record without our identifier: workspaces may share an account.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_to_number
WHERE to_number = :phone
    AND created_at BETWEEN :since AND :until
    AND provider = :provider
    AND from_number {is} :from_number::text
    AND id <> :dispatch_id
ORDER BY created_at, id

-- of_recipient --
-- All dispatches of some recipients. The index is named, because SQLite would scan a campaign's dispatches along the
-- one in the order of time.
SELECT {dispatches}
FROM {each_row:wanted}
{join} dispatches INDEXED BY dispatches_of_recipient
    ON dispatches.campaign_number = {part:0}::bigint
    AND dispatches.position = {part:1}::bigint
ORDER BY dispatches.created_at, dispatches.id

-- of_call --
-- All dispatches of one call.
SELECT {dispatches} FROM dispatches
WHERE call_id = :call_id AND workspace_id = :workspace_id
ORDER BY created_at, id

-- of_message --
-- All dispatches of one message.
SELECT {dispatches} FROM dispatches
WHERE message_id = :message_id AND workspace_id = :workspace_id
ORDER BY created_at, id

-- to_person --
-- A number's messages of campaigns, newest first.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_to_number
WHERE to_number = :phone
    AND workspace_id = :workspace_id
    AND channel = 'sms'
    AND campaign_number IS NOT NULL
    AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit

-- sent_to --
-- The latest contacts of a number, over all campaigns of a workspace.
SELECT created_at, state = 'dispatching' FROM dispatches INDEXED BY dispatches_to_number
WHERE workspace_id = :workspace_id
    AND to_number = :phone
    AND created_at >= :since
    AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
    AND coalesce(reason, '') <> 'rate_limited'
    AND NOT EXISTS (
        SELECT 1 FROM messages WHERE messages.id = dispatches.message_id AND messages.purpose <> 'message'
    )
ORDER BY created_at

-- contacted --
-- For the lists of new campaigns: one search in the index for each number, with the conditions of `sent_to`.
SELECT wanted.value AS phone FROM {each:phones}
WHERE EXISTS (
    SELECT 1 FROM dispatches INDEXED BY dispatches_to_number
    WHERE workspace_id = :workspace_id
        AND to_number = wanted.value
        AND created_at > :since
        AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        AND coalesce(reason, '') <> 'rate_limited'
        AND NOT EXISTS (
            SELECT 1 FROM messages WHERE messages.id = dispatches.message_id AND messages.purpose <> 'message'
        )
    {apart}
)

-- dialled --
-- The spelling of a number that a workspace used last.
SELECT to_number FROM dispatches INDEXED BY dispatches_to_number
WHERE workspace_id = :workspace_id AND to_number IN ({values:phones})
ORDER BY created_at DESC
LIMIT 1

-- recent --
-- A campaign's latest outcomes, read after each failure, in the order of the index: many share a time, and sorting them
-- all would take longer.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number AND created_at >= :since AND state <> 'dispatching'
ORDER BY created_at DESC, {serial} DESC
LIMIT :limit

-- judged --
-- What a campaign's error budget is judged by, newest first: what a provider has answered, or left without an answer. All
-- else is left out before the limit, because much of it may come between two failures.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number
    AND created_at >= :since
    AND created_at <= :until
    AND state NOT IN ('dispatching', 'withdrawn', 'deferred', 'not_sent')
    AND coalesce(reason, '') NOT IN ('worker_lost', 'interrupted')
ORDER BY created_at DESC, {serial} DESC
LIMIT :limit

-- groups --
-- A campaign's outcomes at its providers, for people; reads all its dispatches.
SELECT
    dispatches.provider AS provider,
    dispatches.state AS state,
    dispatches.report AS report,
    dispatches.reason AS reason,
    COALESCE(dispatches.error_code, CASE WHEN calls.status IN ('failed', 'canceled') THEN calls.error END) AS error_code,
    COUNT(*) AS count,
    MAX(dispatches.error_message) AS error_message
FROM dispatches INDEXED BY dispatches_of_campaign
LEFT JOIN calls ON calls.id = dispatches.call_id
WHERE dispatches.campaign_number = :number
GROUP BY 1, 2, 3, 4, 5
ORDER BY 6 DESC, 1, 2, 3 NULLS FIRST, 4 NULLS FIRST, 5 NULLS FIRST
LIMIT 1000

-- abandoned --
-- Left without an outcome by workers that have ended. The first condition is that of the index, word for word, as in the next
-- two queries.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_open
WHERE state IN ('dispatching', 'unknown') AND state = 'dispatching'
    AND epoch {not_in} {values:living}::bigint {end}
ORDER BY created_at, id
LIMIT :limit

-- unknown --
-- Unknown dispatches, which wait for evidence.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_open
WHERE state IN ('dispatching', 'unknown') AND state = 'unknown'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND (created_at, id) > (:after_at, :after_id)
ORDER BY created_at, id
LIMIT :limit

-- undecided --
-- Unknown dispatches that an operator decides about at once.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_open
WHERE state IN ('dispatching', 'unknown') AND state = 'unknown'
    AND workspace_id = :workspace_id
    AND (:number::bigint IS NULL OR campaign_number = :number::bigint)
    AND (:provider::text IS NULL OR provider = :provider::text)
    AND (:reason::text IS NULL OR reason = :reason::text OR error_code = :reason::text)
    AND (:until::text IS NULL OR created_at < :until::text)
    AND (created_at, id) > (:after_at, :after_id)
ORDER BY created_at, id
LIMIT :limit

-- decided --
-- Those that an operator has decided about. The first condition is that of the index.
SELECT {dispatches} FROM dispatches INDEXED BY dispatches_decided
WHERE (state = 'given_up' OR reason = 'assumed_sent')
    AND workspace_id = :workspace_id
    AND (:number::bigint IS NULL OR campaign_number = :number::bigint)
    AND (:provider::text IS NULL OR provider = :provider::text)
    AND (:reason::text IS NULL OR reason = :reason::text OR error_code = :reason::text)
    AND (:until::text IS NULL OR created_at < :until::text)
    AND (created_at, id) > (:after_at, :after_id)
ORDER BY created_at, id
LIMIT :limit

-- count_unknown --
-- The number of unknown dispatches in each workspace and their oldest, among the oldest ones.
SELECT workspace_id, COUNT(*), MIN(created_at)
FROM (
    SELECT workspace_id, created_at FROM dispatches INDEXED BY dispatches_open
    WHERE state IN ('dispatching', 'unknown') AND state = 'unknown'
        AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    ORDER BY created_at, id
    LIMIT :limit
) AS found
GROUP BY workspace_id
ORDER BY MIN(created_at), workspace_id
