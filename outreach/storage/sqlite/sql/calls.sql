-- Call records.

-- get --
-- One call of a workspace.
SELECT calls.*, campaigns.id AS campaign_id
FROM calls
LEFT JOIN campaigns ON campaigns.number = calls.campaign_number
WHERE calls.id = :call_id AND calls.workspace_id = :workspace_id

-- find --
-- The operator names calls alone.
SELECT calls.*, campaigns.id AS campaign_id
FROM calls
LEFT JOIN campaigns ON campaigns.number = calls.campaign_number
WHERE calls.id = :call_id

-- by_provider_id --
-- Identifiers of two providers might be the same; the newest call counts.
SELECT calls.*, campaigns.id AS campaign_id
FROM calls
LEFT JOIN campaigns ON campaigns.number = calls.campaign_number
WHERE calls.workspace_id = :workspace_id AND calls.provider_call_id = :provider_call_id
ORDER BY calls.created_at DESC, calls.id DESC
LIMIT 1

-- insert --
-- A new call, single or of a campaign.
INSERT INTO calls (
    id, workspace_id, agent_id, campaign_number, position,
    provider, provider_call_id, to_number, from_number, status, outcome, answered_by, variables, attempt, tries,
    error, summary, created_at, dialed_at, answered_at, ended_at
) VALUES (
    :id, :workspace_id, :agent_id,
    (SELECT number FROM campaigns WHERE id = :campaign_id AND workspace_id = :workspace_id),
    :position,
    :provider, :provider_call_id, :to_number, :from_number, :status, :outcome, :answered_by, :variables,
    :attempt, :tries, :error, :summary, :created_at, :dialed_at, :answered_at, :ended_at
)

-- update --
-- Everything but the key, the agent and the recipient.
UPDATE calls SET
    provider = :provider,
    provider_call_id = :provider_call_id,
    to_number = :to_number,
    from_number = :from_number,
    status = :status,
    outcome = :outcome,
    answered_by = :answered_by,
    variables = :variables,
    attempt = :attempt,
    tries = :tries,
    error = :error,
    summary = :summary,
    created_at = :created_at,
    dialed_at = :dialed_at,
    answered_at = :answered_at,
    ended_at = :ended_at
WHERE id = :id AND workspace_id = :workspace_id

-- open_between --
-- The condition on the status is that of the index `calls_open`, word for word.
SELECT calls.*, campaigns.id AS campaign_id
FROM calls
LEFT JOIN campaigns ON campaigns.number = calls.campaign_number
WHERE calls.workspace_id = :workspace_id
    AND calls.agent_id = :agent_id
    AND calls.to_number = :to_number
    AND calls.status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed')
ORDER BY calls.created_at, calls.id
LIMIT 1
