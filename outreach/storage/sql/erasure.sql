-- Erasing people: their numbers, names and texts go; what is counted stays.

-- hide --
-- A campaign that never started becomes one whose loading was given up, which is swept also after a crash. Its entries
-- of the trail are deleted too. A reader that has not read them misses nothing: nobody was contacted.
UPDATE campaigns SET loading_until = :now
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NULL

-- delete_run --
-- It was scheduled once.
DELETE FROM runs WHERE campaign_number = :number

-- delete_forecasts --
-- It was active once.
DELETE FROM forecasts WHERE campaign_number = :number

-- begin --
-- From then on any worker finishes the erasure.
INSERT INTO erasures (campaign_number, figures, next_position) VALUES (:number, :figures, 0)

-- figures --
-- What the report of an erased campaign keeps.
SELECT figures FROM erasures WHERE campaign_number = :number

-- unfinished --
-- Nearly always none.
SELECT campaigns.workspace_id, campaigns.id, erasures.next_position
FROM erasures INDEXED BY erasures_unfinished
{join} campaigns ON campaigns.number = erasures.campaign_number
WHERE erasures.next_position IS NOT NULL
    AND (:workspace_id::text IS NULL OR campaigns.workspace_id = :workspace_id::text)
ORDER BY erasures.campaign_number
LIMIT 1

-- last_position --
-- The end of a key.
SELECT MAX(position) FROM recipients WHERE campaign_number = :number

-- advance --
-- How far it has come.
UPDATE erasures SET next_position = :next_position WHERE campaign_number = :number

-- recipients --
-- A slice of a campaign's contacts.
UPDATE recipients SET
    phone_number = '',
    phone = NULL,
    first_name = NULL,
    last_name = NULL,
    email = NULL,
    company = NULL,
    custom_variables = NULL,
    external_id = NULL,
    time_zone = NULL,
    us_place = NULL
WHERE campaign_number = :number AND position BETWEEN :first AND :last

-- assign_replies --
-- Without the number in its requests, what belongs to this campaign would belong to an earlier one.
UPDATE inbound_messages INDEXED BY inbound_messages_by_sender SET archived_campaign = :number
WHERE workspace_id = :workspace_id
    AND archived_campaign IS NULL
    AND from_number {in}
        SELECT to_number FROM dispatches
        WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last
    {end}
    AND :number = (
        SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
        WHERE to_number = inbound_messages.from_number
            AND dispatches.workspace_id = :workspace_id
            AND created_at <= inbound_messages.received_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.{serial} DESC
        LIMIT 1
    )

-- assign_opt_outs --
-- The same for the register.
UPDATE unsubscribes SET archived_campaign = :number
WHERE workspace_id = :workspace_id
    AND archived_campaign IS NULL
    AND phone {in}
        SELECT to_number FROM dispatches
        WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last
    {end}
    AND :number = (
        SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
        WHERE to_number = unsubscribes.phone
            AND dispatches.workspace_id = :workspace_id
            AND dispatches.created_at <= unsubscribes.created_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.{serial} DESC
        LIMIT 1
    )

-- dispatches --
-- Their requests.
UPDATE dispatches SET to_number = '', body = NULL, error_message = NULL
WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last

-- calls --
-- Their calls; of an error its code stays, and no sentence or number.
UPDATE calls SET
    to_number = '',
    variables = '{}',
    summary = NULL,
    error = CASE WHEN {private:error} THEN NULL ELSE error END
WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last

-- transcripts --
-- What was said in them.
DELETE FROM transcripts
WHERE campaign_number = :number AND campaign_number IS NOT NULL AND position BETWEEN :first AND :last

-- due_campaign --
-- The oldest that has ended before the retention of its workspace, has nothing open, is not repeated by a schedule, and is
-- no run whose contacts one still leaves out (`occurrences.left_out_by`).
SELECT campaigns.workspace_id, campaigns.id
FROM workspaces
{join} campaigns INDEXED BY campaigns_to_erase ON campaigns.workspace_id = workspaces.id
WHERE workspaces.retention_days IS NOT NULL
    AND (:workspace_id::text IS NULL OR workspaces.id = :workspace_id::text)
    AND campaigns.completed_at IS NOT NULL
    AND campaigns.erased_at IS NULL
    AND campaigns.loading_until IS NULL
    AND campaigns.completed_at < {days_before:workspaces.retention_days}
    AND campaigns.recipients_open = 0
    AND NOT EXISTS (
        SELECT 1 FROM schedules INDEXED BY schedules_of_workspace
        WHERE schedules.workspace_id = campaigns.workspace_id
            AND schedules.state <> 'ended'
            AND schedules.removed_at IS NULL
            AND campaigns.id IN (schedules.template_id, schedules.audience_id)
    )
    AND NOT EXISTS (
        SELECT 1 FROM occurrences INDEXED BY occurrences_of_run
        {join} schedules ON schedules.id = occurrences.schedule_id
        WHERE occurrences.run_id = campaigns.id
            AND occurrences.workspace_id = campaigns.workspace_id
            AND schedules.state <> 'ended'
            AND schedules.removed_at IS NULL
            AND campaigns.completed_at >= {days_before:schedules.not_again_within_days}
    )
ORDER BY campaigns.completed_at
LIMIT 1

-- with_retention --
-- Workspaces that keep nothing for good.
SELECT id, retention_days FROM workspaces
WHERE retention_days IS NOT NULL AND (:workspace_id::text IS NULL OR id = :workspace_id::text)
ORDER BY id

-- old_messages --
-- Single messages that ended before a moment.
SELECT id FROM messages INDEXED BY messages_to_erase
WHERE workspace_id = :workspace_id AND ended_at IS NOT NULL AND to_number <> '' AND ended_at < :before
ORDER BY ended_at
LIMIT :limit

-- old_calls --
-- Single calls that ended before a moment.
SELECT id FROM calls INDEXED BY calls_to_erase
WHERE workspace_id = :workspace_id
    AND ended_at IS NOT NULL
    AND to_number <> ''
    AND campaign_number IS NULL
    AND ended_at < :before
ORDER BY ended_at
LIMIT :limit

-- messages --
-- Texts and numbers of single messages, and what applications attached to them.
UPDATE messages SET to_number = :name, body = '', external_id = NULL, metadata = NULL
WHERE workspace_id = :workspace_id AND id {in} {values:ids} {end}

-- dispatches_of_messages --
-- Their requests.
UPDATE dispatches SET to_number = :name, body = NULL, error_message = NULL
WHERE workspace_id = :workspace_id
    AND message_id IS NOT NULL
    AND message_id {in} {values:ids} {end}

-- single_calls --
-- Variables, summaries and numbers of calls; of an error its code stays, and no sentence or number. The country decides
-- about the price.
UPDATE calls SET
    to_number = :name,
    country = :country,
    variables = '{}',
    summary = NULL,
    external_id = NULL,
    metadata = NULL,
    error = CASE WHEN {private:error} THEN NULL ELSE error END
WHERE workspace_id = :workspace_id AND id {in} {values:ids} {end}

-- transcripts_of_calls --
-- What was said in calls.
DELETE FROM transcripts WHERE workspace_id = :workspace_id AND call_id {in} {values:ids} {end}

-- dispatches_of_calls --
-- Their requests.
UPDATE dispatches SET to_number = :name, body = NULL, error_message = NULL
WHERE workspace_id = :workspace_id
    AND call_id IS NOT NULL
    AND call_id {in} {values:ids} {end}

-- old_inbound --
-- Messages that came in before a moment, but for those that stop a flow when their sender's turn comes, and, until they are
-- too old to wait, for those that a campaign counts that is not erased: its requests still have their numbers.
WITH flows_under_way AS MATERIALIZED (
    SELECT number, COALESCE(started_at, created_at) AS since FROM campaigns
    WHERE workspace_id = :workspace_id AND loading_until IS NULL AND flow_id IS NOT NULL AND recipients_open > 0
)
SELECT {inbound_messages} FROM inbound_messages INDEXED BY inbound_messages_by_time
WHERE inbound_messages.workspace_id = :workspace_id
    AND inbound_messages.received_at < :before
    AND NOT EXISTS (
        SELECT 1 FROM flows_under_way
        {join} recipients INDEXED BY recipients_by_phone
            ON recipients.campaign_number = flows_under_way.number
            AND recipients.phone = inbound_messages.from_number
        WHERE flows_under_way.since <= inbound_messages.received_at
            AND recipients.status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown')
    )
    AND NOT (
        inbound_messages.received_at >= :waiting_since
        AND inbound_messages.archived_campaign IS NULL
        AND EXISTS (
            SELECT 1 FROM dispatches INDEXED BY dispatches_to_number
            WHERE to_number = inbound_messages.from_number
                AND dispatches.workspace_id = :workspace_id
                AND created_at <= inbound_messages.received_at
                AND campaign_number IS NOT NULL
                AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        )
    )
ORDER BY inbound_messages.received_at
LIMIT :limit

-- inbound --
-- They are deleted when what is to be remembered of them is.
DELETE FROM inbound_messages
WHERE workspace_id = :workspace_id AND id {in} {values:ids} {end}

-- old_callbacks --
-- Events of providers that came before a moment.
DELETE FROM callbacks WHERE {row} {in}
    SELECT {row} FROM callbacks INDEXED BY callbacks_by_time
    WHERE workspace_id = :workspace_id AND received_at < :before
    ORDER BY received_at
    LIMIT :limit
{end}

-- old_trail --
-- Numbers in the trail; what happened stays.
UPDATE trail SET phone = NULL WHERE number {in}
    SELECT number FROM trail INDEXED BY trail_of_number
    WHERE workspace_id = :workspace_id AND phone IS NOT NULL AND number < :until
    LIMIT :limit
{end}

-- next_in_trail --
-- Entries are numbered in the order of time: a few of these find where a time begins, without an index of times.
SELECT number, at FROM trail WHERE number >= :number ORDER BY number LIMIT 1

-- old_register --
-- Numbers on the register that become hashes, but for those that wait for a campaign, as messages do.
SELECT {unsubscribes} FROM unsubscribes INDEXED BY unsubscribes_to_hash
WHERE workspace_id = :workspace_id
    AND substr(phone, 1, 1) <> '#'
    AND scope <> 'held'
    AND created_at < :before
    AND NOT (
        unsubscribes.created_at >= :waiting_since
        AND source IN ('keyword', 'carrier', 'call')
        AND archived_campaign IS NULL
        AND EXISTS (
            SELECT 1 FROM dispatches INDEXED BY dispatches_to_number
            WHERE to_number = unsubscribes.phone
                AND dispatches.workspace_id = :workspace_id
                AND dispatches.created_at <= unsubscribes.created_at
                AND campaign_number IS NOT NULL
                AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        )
    )
ORDER BY created_at
LIMIT :limit

-- loading --
-- Whether contacts are being loaded, or still have to be moved to their campaign.
SELECT 1 FROM campaigns
WHERE loading_until IS NOT NULL
    AND (loading_until >= :now OR adds_to IS NOT NULL)
    AND workspace_id = :workspace_id
LIMIT 1

-- recipients_of_person --
-- One search of the index for each campaign.
SELECT {recipients}
FROM campaigns
{join} recipients INDEXED BY recipients_by_phone ON recipients.campaign_number = campaigns.number
    AND recipients.phone = :phone
WHERE campaigns.workspace_id = :workspace_id AND campaigns.loading_until IS NULL
LIMIT :limit

-- messages_of_person --
-- By the index of numbers, as calls are.
SELECT id, ended_at IS NULL FROM messages WHERE workspace_id = :workspace_id AND to_number = :phone LIMIT :limit

-- calls_of_person --
-- The same for calls.
SELECT id, status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed')
FROM calls
WHERE workspace_id = :workspace_id AND to_number = :phone
LIMIT :limit

-- answers_of_person --
-- Asked once, by an operator: all answers that idempotency keys repeat are read.
SELECT operation, key FROM idempotency_keys
WHERE workspace_id = :workspace_id AND {has_digits:answer}
LIMIT :limit

-- person_in_recipients --
-- A person's places in campaigns; the name stands for the number in all of them.
UPDATE recipients SET
    phone_number = :name,
    phone = :name,
    first_name = NULL,
    last_name = NULL,
    email = NULL,
    company = NULL,
    custom_variables = NULL,
    external_id = NULL,
    time_zone = NULL,
    us_place = NULL
WHERE campaign_number = :number AND position = :position

-- person_in_dispatches --
-- All requests to the person; their country decides about the price.
UPDATE dispatches SET to_number = :name, country = :country, body = NULL, error_message = NULL
WHERE to_number = :phone AND workspace_id = :workspace_id

-- person_in_inbound --
-- What the person wrote.
UPDATE inbound_messages SET from_number = :name, body = '', media = '[]'
WHERE workspace_id = :workspace_id AND from_number = :phone

-- person_in_trail --
-- Opt-outs, opt-ins and replies in the trail.
UPDATE trail SET phone = :name WHERE workspace_id = :workspace_id AND phone = :phone

-- person_in_attempts --
-- The answer of a webhook endpoint may repeat the number.
UPDATE webhook_attempts SET answer = ''
WHERE workspace_id = :workspace_id AND {instr}(answer, substr(:phone::text, 2)) > 0

-- person_in_figures --
-- The report of a campaign in a ledger archive has the providers' words, which may name the number.
UPDATE archived_campaigns SET figures = replace(figures, substr(:phone::text, 2), :name::text)
WHERE {instr}(figures, substr(:phone::text, 2)) > 0
    AND campaign_number IN (SELECT number FROM campaigns WHERE workspace_id = :workspace_id)
