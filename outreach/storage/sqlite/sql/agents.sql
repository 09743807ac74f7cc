-- Voice agents.

-- get --
-- One agent of a workspace.
SELECT * FROM agents WHERE id = :agent_id AND workspace_id = :workspace_id

-- insert --
-- A new agent.
INSERT INTO agents (
    id, workspace_id, name, provider, provider_agent_id, direction, allow_outbound, is_active, placeholders,
    from_number, voicemail, voicemail_message, max_call_seconds, revision, created_at, updated_at
) VALUES (
    :id, :workspace_id, :name, :provider, :provider_agent_id, :direction, :allow_outbound, :is_active, :placeholders,
    :from_number, :voicemail, :voicemail_message, :max_call_seconds, :revision, :created_at, :updated_at
)

-- update --
-- Every field but the key and the workspace.
UPDATE agents SET
    name = :name,
    provider = :provider,
    provider_agent_id = :provider_agent_id,
    direction = :direction,
    allow_outbound = :allow_outbound,
    is_active = :is_active,
    placeholders = :placeholders,
    from_number = :from_number,
    voicemail = :voicemail,
    voicemail_message = :voicemail_message,
    max_call_seconds = :max_call_seconds,
    revision = :revision,
    created_at = :created_at,
    updated_at = :updated_at
WHERE id = :id AND workspace_id = :workspace_id

-- list --
-- For the operator; a workspace has few.
SELECT * FROM agents WHERE workspace_id = :workspace_id ORDER BY created_at, id
