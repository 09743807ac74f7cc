-- Accounts at carriers and voice providers.

-- find --
-- By its identifier alone: what a callback's address and the operator's commands have.
SELECT {accounts} FROM accounts WHERE id = :account_id

-- at --
-- A workspace has one at each provider at the most.
SELECT {accounts} FROM accounts WHERE workspace_id = :workspace_id AND provider = :provider

-- list --
-- For the operator; a workspace has few.
SELECT {accounts} FROM accounts WHERE workspace_id = :workspace_id ORDER BY created_at, id

-- holds --
-- When the clock was set back; a row a workspace and provider at the most.
SELECT {account_holds} FROM account_holds ORDER BY workspace_id, provider

-- unexpired_throttles --
-- Providers that are left alone now; a row a workspace and provider at the most.
SELECT {account_holds} FROM account_holds
WHERE until > :now AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
ORDER BY until, workspace_id, provider
LIMIT :limit
