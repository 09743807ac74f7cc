-- Campaigns. `loading_until IS NULL` means published.

-- refs --
-- The references of campaigns, including loading ones; the caller compares their workspaces.
SELECT campaigns.number, campaigns.workspace_id, campaigns.id
FROM {each:wanted} {join} campaigns ON campaigns.id = wanted.value

-- refs_by_number --
-- The campaigns of rows that were read.
SELECT campaigns.number, campaigns.workspace_id, campaigns.id
FROM {each:wanted} {join} campaigns ON campaigns.number = wanted.value::bigint

-- statuses --
-- The caller compares their workspaces and statuses: a condition on a status would let PostgreSQL read all that have it.
SELECT campaigns.workspace_id, campaigns.id, campaigns.status
FROM {each:wanted} {join} campaigns ON campaigns.id = wanted.value

-- extend_loading --
-- While its recipients are loaded.
UPDATE campaigns SET loading_until = :loading_until
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- get_loading --
-- A loading campaign.
SELECT {campaigns} FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- publish --
-- From then on it is visible, with its counters.
UPDATE campaigns SET
    loading_until = NULL,
    recipients_total = :recipients_total,
    recipients_pending = :recipients_pending,
    recipients_completed = :recipients_completed,
    recipients_successful = :recipients_successful,
    recipients_failed = :recipients_failed,
    recipients_open = :recipients_open
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- stage_addition --
-- From then on its contacts are moved to the other campaign, and not deleted as a leftover.
UPDATE campaigns SET adds_to = :target_id
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- addition_target --
-- Where the contacts of a hidden campaign are moved to.
SELECT adds_to FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL AND adds_to IS NOT NULL

-- any_addition --
-- Whether contacts are still to be moved to a campaign.
SELECT 1 FROM campaigns INDEXED BY campaigns_adding
WHERE adds_to = :campaign_id AND workspace_id = :workspace_id
LIMIT 1

-- leftovers --
-- What a crash left while it was loading.
SELECT workspace_id, id FROM campaigns WHERE loading_until < :now ORDER BY loading_until, id

-- loading_number --
-- Its number, if there is something to delete.
SELECT number FROM campaigns
WHERE id = :campaign_id AND workspace_id = :workspace_id AND loading_until IS NOT NULL

-- delete_recipients --
-- In slices, so that no transaction lasts long.
DELETE FROM recipients
WHERE campaign_number = :number AND position {in}
    SELECT position FROM recipients WHERE campaign_number = :number ORDER BY position LIMIT :limit
{end}

-- delete_trail --
-- Its trail entries.
DELETE FROM trail WHERE number {in}
    SELECT number FROM trail INDEXED BY trail_of_campaign WHERE campaign_number = :number LIMIT :limit
{end}

-- delete_empty --
-- The campaign itself, after its recipients and trail entries.
DELETE FROM campaigns
WHERE number = :number
    AND NOT EXISTS (SELECT 1 FROM recipients WHERE campaign_number = :number)
    AND NOT EXISTS (SELECT 1 FROM trail WHERE campaign_number = :number)

-- find --
-- For operators' commands, which name campaigns alone.
SELECT {campaigns} FROM campaigns WHERE id = :campaign_id AND loading_until IS NULL

-- list --
-- A workspace's list: its number, and that of its latest change.
SELECT number, change FROM campaign_lists WHERE workspace_id = :workspace_id

-- count --
-- Counted without reading any campaign.
SELECT SUM(count)::bigint AS sum FROM campaign_counts
WHERE workspace_id = :workspace_id
    AND channel = :channel  -- if given
    AND status = :status  -- if given

-- page --
-- The numbers on a page, newest first; only an index is read.
SELECT number, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel = :channel  -- or each
    AND status = :status  -- if given
    AND loading_until IS NULL
    AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit OFFSET :offset

-- filters --
-- What the queries below have where `{filters}` is.
    AND status = :status  -- if given
    AND {instr}(name_folded, :search) > 0  -- if given
    AND {has_pair:campaigns.metadata|:metadata}  -- if given

-- scanned --
-- Those that filters leave, by a scan in the order of an index: also by names, where the index of names does not help
-- because a text is too short or too frequent.
SELECT number, (created_at, id) < (:after_at, :after_id) AS is_behind, created_at, id FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel = :channel  -- or each
    AND loading_until IS NULL
{filters}
ORDER BY created_at DESC, id DESC

-- of_external_id --
-- Few, and by an index of their own.
SELECT number, (created_at, id) < (:after_at, :after_id) AS is_behind FROM campaigns INDEXED BY campaigns_by_external_id
WHERE workspace_id = :workspace_id
    AND external_id = :external_id
    AND loading_until IS NULL
    AND channel = :channel  -- if given
    AND CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END = :archived  -- if given
{filters}
ORDER BY created_at DESC, id DESC

-- any_archived --
-- Nearly always none: then the lists without them are those of all.
SELECT 1 FROM campaigns INDEXED BY campaigns_archived
WHERE workspace_id = :workspace_id AND archived_at IS NOT NULL AND loading_until IS NULL
LIMIT 1

-- archived --
-- Few, and by an index of their own.
SELECT number, (created_at, id) < (:after_at, :after_id) AS is_behind FROM campaigns INDEXED BY campaigns_archived
WHERE workspace_id = :workspace_id
    AND archived_at IS NOT NULL
    AND loading_until IS NULL
    AND channel = :channel  -- if given
{filters}
ORDER BY created_at DESC, id DESC

-- unarchived --
-- The others of a workspace that has archived ones, counted as they are found.
SELECT number, (created_at, id) < (:after_at, :after_id) AS is_behind FROM campaigns
WHERE workspace_id = :workspace_id
    AND channel IN ('sms', 'call')
    AND archived_at IS NULL
    AND loading_until IS NULL
    AND channel = :channel  -- if given
{filters}
ORDER BY created_at DESC, id DESC

-- in_status --
-- For starting a dispatcher, and for stopping campaigns.
SELECT {campaigns} FROM campaigns
WHERE status {in} {values:statuses} {end}
    AND loading_until IS NULL
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY created_at, id

-- count_in_status --
-- Counted without reading any campaign.
SELECT status, COUNT(*) FROM campaigns
WHERE status {in} {values:statuses} {end}
    AND loading_until IS NULL
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
GROUP BY status

-- open_groups --
-- For metrics: only campaigns that have not ended are read.
SELECT status, pause_reason, COUNT(*), SUM(recipients_pending)::bigint, SUM(recipients_open)::bigint
FROM campaigns INDEXED BY campaigns_in_status
WHERE status IN ('active', 'scheduled', 'paused') AND loading_until IS NULL
GROUP BY status, pause_reason
ORDER BY status, pause_reason NULLS FIRST

-- running --
-- For an operator to look at, in the order of the index.
SELECT {campaigns} FROM campaigns
WHERE status = 'active'
    AND loading_until IS NULL
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY created_at, id
LIMIT :limit

-- paused_by_engine --
-- Paused by the engine, for an operator to look at.
SELECT {campaigns} FROM campaigns
WHERE status = 'paused'
    AND loading_until IS NULL
    AND pause_reason <> 'operator'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
ORDER BY created_at, id
LIMIT :limit

-- taken_back --
-- Ready again, because what was approved has changed: their latest move says so.
SELECT {campaigns} FROM campaigns
WHERE status = 'ready'
    AND loading_until IS NULL
    AND archived_at IS NULL
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND (
        SELECT trail.reason FROM trail
        WHERE trail.campaign_number = campaigns.number AND trail.position IS NULL AND trail.what = 'campaign'
        ORDER BY trail.number DESC LIMIT 1
    ) = :reason
ORDER BY created_at, id
LIMIT :limit

-- keep_forecast --
-- Another worker may have kept the same.
INSERT INTO forecasts (campaign_number, basis, made_at, content)
VALUES (:number, :basis, :made_at, :content)
ON CONFLICT (campaign_number, basis) DO NOTHING

-- delete_forecasts --
-- The first one stays, and so many of the latest.
DELETE FROM forecasts
WHERE campaign_number = :number
    AND basis NOT IN (
        SELECT basis FROM (
            SELECT basis FROM forecasts WHERE campaign_number = :number ORDER BY made_at, basis LIMIT 1
        ) AS first
        UNION ALL
        SELECT basis FROM (
            SELECT basis FROM forecasts WHERE campaign_number = :number ORDER BY made_at DESC, basis DESC LIMIT :latest
        ) AS latest
    )

-- has_forecast --
-- By the key.
SELECT 1 FROM forecasts WHERE campaign_number = :number AND basis = :basis

-- forecasts --
-- There are few of one campaign.
SELECT content FROM forecasts WHERE campaign_number = :number ORDER BY made_at, basis
