-- Accounts at carriers and voice providers.

-- get --
-- One account of a workspace.
SELECT * FROM accounts WHERE id = :account_id AND workspace_id = :workspace_id

-- find --
-- By its identifier alone: what a callback's address and the operator's commands have.
SELECT * FROM accounts WHERE id = :account_id

-- at --
-- A workspace has one at each provider at the most.
SELECT * FROM accounts WHERE workspace_id = :workspace_id AND provider = :provider

-- insert --
-- A new account.
INSERT INTO accounts (id, workspace_id, provider, sealed, replies_to_keywords, revision, created_at, updated_at)
VALUES (:id, :workspace_id, :provider, :sealed, :replies_to_keywords, :revision, :created_at, :updated_at)

-- update --
-- Its provider stays.
UPDATE accounts SET
    sealed = :sealed,
    replies_to_keywords = :replies_to_keywords,
    revision = :revision,
    updated_at = :updated_at
WHERE id = :id AND workspace_id = :workspace_id

-- delete --
-- What it called back stays, until it is old.
DELETE FROM accounts WHERE id = :account_id AND workspace_id = :workspace_id

-- list --
-- For the operator; a workspace has few.
SELECT * FROM accounts WHERE workspace_id = :workspace_id ORDER BY created_at, id
