-- Who reads the events under a name: how far, and which process does so now.
CREATE TABLE subscriptions (
    name TEXT PRIMARY KEY,
    workspace_id TEXT REFERENCES workspaces (id),
    position INTEGER NOT NULL,
    gap_until INTEGER NOT NULL,
    holder TEXT,
    held_until TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Up to which number entries of the trail were deleted by hand: whoever has not come so far has missed some.
CREATE TABLE trail_purged (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    until INTEGER NOT NULL
) STRICT;

INSERT INTO trail_purged (id, until) VALUES (1, 0);

-- What was told of a campaign whose loading was given up is no loss: nobody ever saw the campaign.
CREATE TRIGGER trail_is_purged AFTER DELETE ON trail
WHEN OLD.campaign_number IS NULL OR EXISTS (
    SELECT 1 FROM campaigns WHERE number = OLD.campaign_number AND loading_until IS NULL
)
BEGIN
    UPDATE trail_purged SET until = max(until, OLD.number) WHERE id = 1;
END;
