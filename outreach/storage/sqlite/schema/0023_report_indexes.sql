-- For reports: what became of few. The plain good end is in neither index, so that most messages do not pay for them.
-- No NOT IN: SQLite makes a table of its values for every row that is written, which takes 10 µs.
CREATE INDEX dispatches_not_plain ON dispatches (campaign_number)
WHERE state <> 'dispatching' AND (state <> 'accepted' OR reason IS NOT NULL OR error_code IS NOT NULL);

CREATE INDEX recipients_not_plain ON recipients (campaign_number, status, reason, dispatched)
WHERE status <> 'pending'
    AND status <> 'waiting'
    AND status <> 'dispatching'
    AND status <> 'in_progress'
    AND status <> 'unknown'
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0);
