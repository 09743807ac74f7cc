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
