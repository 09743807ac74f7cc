-- Accounts at carriers and voice providers.

-- find --
-- By its identifier alone, for callbacks and operators' commands.
SELECT {accounts} FROM accounts WHERE id = :account_id

-- at --
-- A workspace has at most one at each provider.
SELECT {accounts} FROM accounts WHERE workspace_id = :workspace_id AND provider = :provider

-- list --
-- For operators; a workspace has few.
SELECT {accounts} FROM accounts WHERE workspace_id = :workspace_id ORDER BY created_at, id

-- anywhere --
-- For an operator to look at.
SELECT {accounts} FROM accounts
WHERE :workspace_id::text IS NULL OR workspace_id = :workspace_id::text
ORDER BY created_at, id
LIMIT :limit

-- page --
-- All, for a change of the key that their credentials are encrypted with.
SELECT {accounts} FROM accounts WHERE id > :after::text ORDER BY id LIMIT :limit

-- holds --
-- When the clock was set back; a row a workspace and provider at the most.
SELECT {provider_throttles} FROM provider_throttles ORDER BY workspace_id, provider

-- unexpired_throttles --
-- Throttles in force, at most one for each workspace and provider.
SELECT {provider_throttles} FROM provider_throttles
WHERE until > :now AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY until, workspace_id, provider
LIMIT :limit

-- without_receipt --
-- How many messages of a period some accounts of live workspaces had accepted, for which no receipt has come: in campaigns
-- that run, in those that have ended since, and single ones. The counts and the number of campaigns are bounded.
SELECT {part:0} AS workspace_id, {part:1} AS provider, (
    SELECT COUNT(*) FROM (
        SELECT 1
        FROM (
            SELECT number FROM campaigns
            WHERE workspace_id = {part:0} AND channel = 'sms' AND loading_until IS NULL
                AND status IN ('active', 'paused') AND (carrier = {part:1} OR carrier IS NULL)
            LIMIT :campaigns
        ) AS running
        JOIN dispatches ON dispatches.campaign_number = running.number
        WHERE dispatches.created_at > {part:2} AND dispatches.created_at <= {part:3}
            AND dispatches.state = 'accepted' AND dispatches.report IS NULL AND dispatches.provider = {part:1}
        LIMIT :limit
    ) AS of_running
) + (
    SELECT COUNT(*) FROM (
        SELECT 1
        FROM (
            SELECT number FROM campaigns
            WHERE workspace_id = {part:0} AND completed_at IS NOT NULL AND erased_at IS NULL AND loading_until IS NULL
                AND completed_at > {part:2} AND channel = 'sms' AND (carrier = {part:1} OR carrier IS NULL)
            LIMIT :campaigns
        ) AS ended
        JOIN dispatches ON dispatches.campaign_number = ended.number
        WHERE dispatches.created_at > {part:2} AND dispatches.created_at <= {part:3}
            AND dispatches.state = 'accepted' AND dispatches.report IS NULL AND dispatches.provider = {part:1}
        LIMIT :limit
    ) AS of_ended
) + (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM messages
        WHERE workspace_id = {part:0} AND carrier = {part:1} AND status = 'accepted' AND provider_id IS NOT NULL
            AND ended_at IS NOT NULL AND to_number <> '' AND ended_at > {part:2} AND ended_at <= {part:3}
        LIMIT :limit
    ) AS singles
) AS accepted
FROM {each_row:wanted}
WHERE EXISTS (SELECT 1 FROM workspaces WHERE id = {part:0} AND mode = 'live' AND status = 'active')
