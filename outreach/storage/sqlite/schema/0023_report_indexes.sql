-- For reports: what became of few. The plain good end is in neither index, so that most messages do not pay for them.
CREATE INDEX dispatches_not_plain ON dispatches (campaign_number)
WHERE state <> 'dispatching' AND (state <> 'accepted' OR reason IS NOT NULL OR error_code IS NOT NULL);

CREATE INDEX recipients_not_plain ON recipients (campaign_number, status, reason, dispatched)
WHERE status NOT IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown')
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0);
