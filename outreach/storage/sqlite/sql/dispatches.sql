-- The ledger.

-- insert --
-- An intent. That there is no other unsettled one for the same thing is the work of three unique indexes.
INSERT INTO dispatches (
    id, workspace_id, channel, campaign_number, position, message_id, call_id,
    step, attempt, leg, try_number, provider, from_number, to_number, body, segments, state, provider_id,
    report, reason, error_code, error_message, slot_at, valid_until, epoch, created_at, settled_at
) VALUES (
    :id, :workspace_id, :channel,
    (SELECT number FROM campaigns WHERE id = :campaign_id AND workspace_id = :workspace_id),
    :position, :message_id, :call_id,
    :step, :attempt, :leg, :try_number, :provider, :from_number, :to_number, :body, :segments, :state,
    :provider_id, :report, :reason, :error_code, :error_message, :slot_at, :valid_until, :epoch, :created_at,
    :settled_at
)

-- get --
-- One dispatch of a workspace.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.id = :dispatch_id AND dispatches.workspace_id = :workspace_id

-- find --
-- For operators, whose commands name dispatches alone.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.id = :dispatch_id

-- by_provider_id --
-- Whose outcome a callback tells. Providers promise unique identifiers; were one used again, the newest counts.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.provider_id = :provider_id
    AND dispatches.provider = :provider
    AND dispatches.workspace_id = :workspace_id
ORDER BY dispatches.created_at DESC, dispatches.id DESC
LIMIT 1

-- update --
-- Everything but the key and what it is for.
UPDATE dispatches SET
    step = :step,
    attempt = :attempt,
    leg = :leg,
    try_number = :try_number,
    provider = :provider,
    from_number = :from_number,
    to_number = :to_number,
    body = :body,
    segments = :segments,
    state = :state,
    provider_id = :provider_id,
    report = :report,
    reason = :reason,
    error_code = :error_code,
    error_message = :error_message,
    slot_at = :slot_at,
    valid_until = :valid_until,
    epoch = :epoch,
    created_at = :created_at,
    settled_at = :settled_at
WHERE id = :id AND workspace_id = :workspace_id

-- of_recipient --
-- All that was ever asked of a provider for one recipient. The index is named: along the one in the order of time
-- SQLite would look at every dispatch of the campaign.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM campaigns
CROSS JOIN dispatches INDEXED BY dispatches_of_recipient ON dispatches.campaign_number = campaigns.number
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND dispatches.position = :position
ORDER BY dispatches.created_at, dispatches.id

-- of_call --
-- All that was ever asked of a provider for one call.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.call_id = :call_id AND dispatches.workspace_id = :workspace_id
ORDER BY dispatches.created_at, dispatches.id

-- of_message --
-- All that was ever asked of a provider for one message.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.message_id = :message_id AND dispatches.workspace_id = :workspace_id
ORDER BY dispatches.created_at, dispatches.id

-- sent_to --
-- How often a number was contacted lately, over all campaigns of a workspace.
SELECT created_at, state = 'dispatching' AS under_way FROM dispatches INDEXED BY dispatches_to_number
WHERE workspace_id = :workspace_id
    AND to_number = :phone
    AND created_at >= :since
    AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
    AND NOT EXISTS (
        SELECT 1 FROM messages WHERE messages.id = dispatches.message_id AND messages.purpose <> 'message'
    )
ORDER BY created_at

-- recent --
-- How a campaign's latest requests went, asked whenever one went badly.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM campaigns
CROSS JOIN dispatches INDEXED BY dispatches_of_campaign ON dispatches.campaign_number = campaigns.number
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND dispatches.created_at >= :since
    AND dispatches.state <> 'dispatching'
ORDER BY dispatches.created_at DESC, dispatches.id DESC
LIMIT :limit

-- groups --
-- What a campaign came to at its providers, for people: every dispatch of the campaign is looked at.
SELECT
    dispatches.provider AS provider,
    dispatches.state AS state,
    dispatches.report AS report,
    dispatches.reason AS reason,
    COALESCE(dispatches.error_code, CASE WHEN calls.status = 'failed' THEN calls.error END) AS error_code,
    COUNT(*) AS count
FROM campaigns
CROSS JOIN dispatches INDEXED BY dispatches_of_campaign ON dispatches.campaign_number = campaigns.number
LEFT JOIN calls ON calls.id = dispatches.call_id
WHERE campaigns.id = :campaign_id AND campaigns.workspace_id = :workspace_id
GROUP BY 1, 2, 3, 4, 5
ORDER BY 6 DESC, 1, 2, 3, 4, 5
LIMIT 1000

-- abandoned --
-- What workers that are gone have left without an outcome: nobody can tell, so it becomes unknown.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.state = 'dispatching' AND dispatches.epoch < :epoch
ORDER BY dispatches.created_at, dispatches.id
LIMIT :limit

-- unknown --
-- What waits for evidence.
SELECT dispatches.*, campaigns.id AS campaign_id
FROM dispatches
LEFT JOIN campaigns ON campaigns.number = dispatches.campaign_number
WHERE dispatches.state = 'unknown' AND (:workspace_id IS NULL OR dispatches.workspace_id = :workspace_id)
    AND (dispatches.created_at, dispatches.id) > (:after_at, :after_id)
ORDER BY dispatches.created_at, dispatches.id
LIMIT :limit
