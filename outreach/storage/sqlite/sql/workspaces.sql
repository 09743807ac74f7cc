-- Workspaces: the one table that is not within a workspace.

-- get --
-- One workspace, by its key.
SELECT * FROM workspaces WHERE id = :workspace_id

-- insert --
-- A new workspace.
INSERT INTO workspaces (
    id, name, mode, status, sms_campaigns_enabled, request_limit, default_region, contact_hours, frequency_cap,
    revision, created_at, updated_at
) VALUES (
    :id, :name, :mode, :status, :sms_campaigns_enabled, :request_limit, :default_region, :contact_hours,
    :frequency_cap, :revision, :created_at, :updated_at
)

-- update --
-- Every field but the key.
UPDATE workspaces SET
    name = :name,
    mode = :mode,
    status = :status,
    sms_campaigns_enabled = :sms_campaigns_enabled,
    request_limit = :request_limit,
    default_region = :default_region,
    contact_hours = :contact_hours,
    frequency_cap = :frequency_cap,
    revision = :revision,
    created_at = :created_at,
    updated_at = :updated_at
WHERE id = :id

-- list --
-- For the operator; there are few.
SELECT * FROM workspaces ORDER BY created_at, id
