-- What became of the runs of schedules.

-- page --
-- The latest first, in the order of the key.
SELECT {occurrences} FROM occurrences
WHERE workspace_id = :workspace_id AND schedule_id = :schedule_id AND at < :before
ORDER BY at DESC
LIMIT :limit

-- made --
-- The run whose campaign is made and not yet started: at most one.
SELECT {occurrences} FROM occurrences INDEXED BY occurrences_made
WHERE workspace_id = :workspace_id AND schedule_id = :schedule_id AND state = 'made'
ORDER BY at
LIMIT 1

-- last_with_campaign --
-- From the end of the key: nearly always the first row.
SELECT {occurrences} FROM occurrences
WHERE workspace_id = :workspace_id AND schedule_id = :schedule_id AND run_id IS NOT NULL AND at <= :until
ORDER BY at DESC
LIMIT 1

-- of_run --
-- Whether a campaign is a run: its policy for a late start is that of its schedule.
SELECT {occurrences} FROM occurrences INDEXED BY occurrences_of_run
WHERE run_id = :run_id AND workspace_id = :workspace_id

-- left_out_by --
-- The schedule that still leaves out whom a run has reached: these numbers stand in the requests of the run alone.
SELECT schedules.name
FROM occurrences INDEXED BY occurrences_of_run
{join} schedules ON schedules.id = occurrences.schedule_id
{join} campaigns ON campaigns.id = occurrences.run_id
WHERE occurrences.run_id = :run_id
    AND occurrences.workspace_id = :workspace_id
    AND schedules.state <> 'ended'
    AND schedules.removed_at IS NULL
    AND campaigns.erased_at IS NULL
    AND campaigns.completed_at >= {days_before:schedules.not_again_within_days}

-- contacted --
-- Whom earlier runs have reached, or will: the requests of each number, by the conditions of `dispatches.contacted`,
-- and the open contacts of campaigns that are under way.
SELECT wanted.value AS phone FROM {each:phones}
WHERE EXISTS (
    SELECT 1 FROM dispatches INDEXED BY dispatches_to_number
    WHERE dispatches.workspace_id = :workspace_id
        AND dispatches.to_number = wanted.value
        AND dispatches.created_at >= :since
        AND dispatches.state NOT IN ('not_sent', 'withdrawn', 'deferred')
        AND coalesce(dispatches.reason, '') <> 'rate_limited'
        AND EXISTS (
            SELECT 1 FROM campaigns
            {join} occurrences INDEXED BY occurrences_of_run ON occurrences.run_id = campaigns.id
            WHERE campaigns.number = dispatches.campaign_number
                AND occurrences.workspace_id = :workspace_id
                AND occurrences.schedule_id = :schedule_id
        )
    {apart}
)
UNION
SELECT wanted.value AS phone FROM {each:phones}
WHERE EXISTS (
    SELECT 1 FROM recipients INDEXED BY recipients_by_phone
    {join} campaigns ON campaigns.number = recipients.campaign_number
    {join} occurrences INDEXED BY occurrences_of_run ON occurrences.run_id = campaigns.id
    WHERE recipients.phone = wanted.value
        AND recipients.status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown')
        AND campaigns.workspace_id = :workspace_id
        AND campaigns.status IN ('scheduled', 'active', 'paused')
        AND occurrences.workspace_id = :workspace_id
        AND occurrences.schedule_id = :schedule_id
    {apart}
)
