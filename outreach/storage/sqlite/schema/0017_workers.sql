-- Who dispatches: each worker has a lease of its own, by the clock of the database.
CREATE TABLE workers (
    epoch INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    renewed_at TEXT NOT NULL,
    until TEXT NOT NULL
) STRICT;

-- Which worker drives a campaign, what a rated number sends, or the single calls and messages of a workspace.
CREATE TABLE claims (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    subject TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX claims_held ON claims (epoch) WHERE held = 1;
