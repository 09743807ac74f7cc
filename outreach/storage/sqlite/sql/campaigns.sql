-- Campaigns, each with the snapshot of its agent. `loading_until IS NULL` is: published.

-- insert_loading --
-- A campaign that nobody sees until it is published.
INSERT INTO campaigns (
    id, workspace_id, channel, name, name_folded, description, status, pause_reason, agent_id, schedule_type,
    scheduled_start_at, scheduled_expires_at, business_hours, holidays, batch_concurrency, sip_trunk_id,
    cli_mode, cli_group, ivr_enabled, call_screen_enabled, double_dial, csv_column_headers, variable_names,
    sms_mode, sms_message_source, sms_message_body, sms_flow_id, sms_carrier, sms_from_number, sms_rate_per_minute,
    recipients_total, recipients_pending, recipients_completed, recipients_successful, recipients_failed,
    recipients_open, revision, created_at, updated_at, started_at, completed_at, loading_until
) VALUES (
    :id, :workspace_id, :channel, :name, :name_folded, :description, :status, :pause_reason, :agent_id,
    :schedule_type, :scheduled_start_at, :scheduled_expires_at, :business_hours, :holidays, :batch_concurrency,
    :sip_trunk_id, :cli_mode, :cli_group, :ivr_enabled, :call_screen_enabled, :double_dial, :csv_column_headers,
    :variable_names,
    :sms_mode, :sms_message_source, :sms_message_body, :sms_flow_id, :sms_carrier, :sms_from_number,
    :sms_rate_per_minute, :recipients_total, :recipients_pending, :recipients_completed, :recipients_successful,
    :recipients_failed, :recipients_open, :revision, :created_at, :updated_at, :started_at, :completed_at,
    :loading_until
)

-- extend_loading --
-- Its recipients are still coming.
UPDATE campaigns SET loading_until = :loading_until
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- get_loading --
-- One that is loading.
SELECT
    campaigns.*,
    agents.name AS agent_name,
    agents.provider AS agent_provider,
    agents.is_active AS agent_is_active
FROM campaigns
LEFT JOIN agents ON agents.id = campaigns.agent_id AND agents.workspace_id = campaigns.workspace_id
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NOT NULL

-- publish --
-- The one moment from which it is seen, with its counters.
UPDATE campaigns SET
    loading_until = NULL,
    channel = :channel,
    name = :name,
    name_folded = :name_folded,
    description = :description,
    status = :status,
    pause_reason = :pause_reason,
    agent_id = :agent_id,
    schedule_type = :schedule_type,
    scheduled_start_at = :scheduled_start_at,
    scheduled_expires_at = :scheduled_expires_at,
    business_hours = :business_hours,
    holidays = :holidays,
    batch_concurrency = :batch_concurrency,
    sip_trunk_id = :sip_trunk_id,
    cli_mode = :cli_mode,
    cli_group = :cli_group,
    ivr_enabled = :ivr_enabled,
    call_screen_enabled = :call_screen_enabled,
    double_dial = :double_dial,
    csv_column_headers = :csv_column_headers,
    variable_names = :variable_names,
    sms_mode = :sms_mode,
    sms_message_source = :sms_message_source,
    sms_message_body = :sms_message_body,
    sms_flow_id = :sms_flow_id,
    sms_carrier = :sms_carrier,
    sms_from_number = :sms_from_number,
    sms_rate_per_minute = :sms_rate_per_minute,
    recipients_total = :recipients_total,
    recipients_pending = :recipients_pending,
    recipients_completed = :recipients_completed,
    recipients_successful = :recipients_successful,
    recipients_failed = :recipients_failed,
    recipients_open = :recipients_open,
    revision = :revision,
    created_at = :created_at,
    updated_at = :updated_at,
    started_at = :started_at,
    completed_at = :completed_at
WHERE id = :id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- leftovers --
-- What a crash left behind while it was loading.
SELECT workspace_id, id FROM campaigns WHERE loading_until < :now ORDER BY loading_until, id

-- loading_number --
-- Its number, when there is something to delete.
SELECT number FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- delete_recipients --
-- A slice, so that no transaction lasts long.
DELETE FROM recipients
WHERE campaign_number = :number AND position IN (
    SELECT position FROM recipients WHERE campaign_number = :number ORDER BY position LIMIT :limit
)

-- delete_trail --
-- What was told of it.
DELETE FROM trail WHERE number IN (
    SELECT number FROM trail INDEXED BY trail_of_campaign WHERE campaign_number = :number ORDER BY number LIMIT :limit
)

-- delete_empty --
-- The campaign itself, once none of its recipients is left, and nothing that was told of it.
DELETE FROM campaigns
WHERE number = :number
    AND NOT EXISTS (SELECT 1 FROM recipients WHERE campaign_number = :number)
    AND NOT EXISTS (SELECT 1 FROM trail WHERE campaign_number = :number)

-- get --
-- One campaign of a workspace.
SELECT
    campaigns.*,
    agents.name AS agent_name,
    agents.provider AS agent_provider,
    agents.is_active AS agent_is_active
FROM campaigns
LEFT JOIN agents ON agents.id = campaigns.agent_id AND agents.workspace_id = campaigns.workspace_id
WHERE campaigns.id = :campaign_id
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL

-- find --
-- The operator names campaigns alone.
SELECT
    campaigns.*,
    agents.name AS agent_name,
    agents.provider AS agent_provider,
    agents.is_active AS agent_is_active
FROM campaigns
LEFT JOIN agents ON agents.id = campaigns.agent_id AND agents.workspace_id = campaigns.workspace_id
WHERE campaigns.id = :campaign_id AND campaigns.loading_until IS NULL

-- update --
-- Every field but the key, the workspace and the counters.
UPDATE campaigns SET
    channel = :channel,
    name = :name,
    name_folded = :name_folded,
    description = :description,
    status = :status,
    pause_reason = :pause_reason,
    agent_id = :agent_id,
    schedule_type = :schedule_type,
    scheduled_start_at = :scheduled_start_at,
    scheduled_expires_at = :scheduled_expires_at,
    business_hours = :business_hours,
    holidays = :holidays,
    batch_concurrency = :batch_concurrency,
    sip_trunk_id = :sip_trunk_id,
    cli_mode = :cli_mode,
    cli_group = :cli_group,
    ivr_enabled = :ivr_enabled,
    call_screen_enabled = :call_screen_enabled,
    double_dial = :double_dial,
    csv_column_headers = :csv_column_headers,
    variable_names = :variable_names,
    sms_mode = :sms_mode,
    sms_message_source = :sms_message_source,
    sms_message_body = :sms_message_body,
    sms_flow_id = :sms_flow_id,
    sms_carrier = :sms_carrier,
    sms_from_number = :sms_from_number,
    sms_rate_per_minute = :sms_rate_per_minute,
    revision = :revision,
    created_at = :created_at,
    updated_at = :updated_at,
    started_at = :started_at,
    completed_at = :completed_at
WHERE id = :id AND workspace_id = :workspace_id AND loading_until IS NULL

-- add_counters --
-- In the transaction that changes the recipients, so that they always equal a recount.
UPDATE campaigns SET
    recipients_total = recipients_total + :recipients_total,
    recipients_pending = recipients_pending + :recipients_pending,
    recipients_completed = recipients_completed + :recipients_completed,
    recipients_successful = recipients_successful + :recipients_successful,
    recipients_failed = recipients_failed + :recipients_failed,
    recipients_open = recipients_open + :recipients_open
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NULL
RETURNING
    recipients_total, recipients_pending, recipients_completed, recipients_successful, recipients_failed,
    recipients_open

-- count --
-- How many match; the conditions are those of `page`.
SELECT COUNT(*) AS total FROM campaigns
WHERE campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (:channel IS NULL OR campaigns.channel = :channel)
    AND (:status IS NULL OR campaigns.status = :status)
    AND (:search IS NULL OR instr(campaigns.name_folded, :search) > 0)

-- page --
-- Newest first. `instr`, unlike LIKE, takes every character as it is.
SELECT
    campaigns.*,
    agents.name AS agent_name,
    agents.provider AS agent_provider,
    agents.is_active AS agent_is_active
FROM campaigns
LEFT JOIN agents ON agents.id = campaigns.agent_id AND agents.workspace_id = campaigns.workspace_id
WHERE campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (:channel IS NULL OR campaigns.channel = :channel)
    AND (:status IS NULL OR campaigns.status = :status)
    AND (:search IS NULL OR instr(campaigns.name_folded, :search) > 0)
ORDER BY campaigns.created_at DESC, campaigns.id DESC
LIMIT :limit OFFSET :offset

-- in_status --
-- What a dispatcher starts with, and what a stop has to stop.
SELECT
    campaigns.*,
    agents.name AS agent_name,
    agents.provider AS agent_provider,
    agents.is_active AS agent_is_active
FROM campaigns
LEFT JOIN agents ON agents.id = campaigns.agent_id AND agents.workspace_id = campaigns.workspace_id
WHERE campaigns.status IN (SELECT value FROM json_each(:statuses))
    AND campaigns.loading_until IS NULL
    AND (:workspace_id IS NULL OR campaigns.workspace_id = :workspace_id)
ORDER BY campaigns.created_at, campaigns.id
