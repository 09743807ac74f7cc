-- Recurring campaigns: schedules, and what became of each of their runs. The exceptions and the approval are JSON.
CREATE TABLE schedules (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    name {text} NOT NULL,
    template_id {text} NOT NULL,
    audience_id {text},
    rule {text} NOT NULL,
    zone {text} NOT NULL,
    starts_on {text} NOT NULL,
    at {text} NOT NULL,
    ends_on {text},
    except_dates {text} NOT NULL,
    holidays {text} NOT NULL,
    overlap {text} NOT NULL,
    late_hours {integer},
    not_again_within_days {integer},
    max_cost {integer},
    state {text} NOT NULL CHECK (state IN ('active', 'paused', 'ended')),
    reason {text},
    next_at {text},
    run_now_at {text},
    last_at {text},
    blocked {integer} NOT NULL,
    known_contacts {integer},
    revision {integer} NOT NULL,
    changed_by {text} NOT NULL,
    approval {text},
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX schedules_of_workspace ON schedules (workspace_id);

CREATE INDEX schedules_paused ON schedules (workspace_id, id) WHERE state = 'paused' AND removed_at IS NULL AND reason <> 'operator';

-- A run is made once under its time: that is the key.
CREATE TABLE occurrences (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    schedule_id {text} NOT NULL REFERENCES schedules (id),
    at {text} NOT NULL,
    run_id {text},
    state {text} NOT NULL CHECK (state IN ('made', 'started', 'blocked', 'skipped', 'missed')),
    reason {text},
    detail {text},
    contacts {integer},
    amount {integer},
    decided_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, schedule_id, at)
) {strict};

CREATE INDEX occurrences_made ON occurrences (workspace_id, schedule_id) WHERE state = 'made';

CREATE INDEX occurrences_of_run ON occurrences (run_id) WHERE run_id IS NOT NULL;
