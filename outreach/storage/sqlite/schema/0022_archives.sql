-- Files that contacts and requests of ended campaigns were moved into.
CREATE TABLE archives (
    id TEXT NOT NULL PRIMARY KEY,
    file TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- What of whom is in them. While it is `copying` the rows here count; from `moving` on those in the archive, and the rows
-- here go, up to the next position; `archived` ones are gone. With `erase` the archive still has to erase them.
CREATE TABLE archived_campaigns (
    campaign_number INTEGER PRIMARY KEY REFERENCES campaigns (number),
    archive_id TEXT NOT NULL REFERENCES archives (id),
    state TEXT NOT NULL,
    next_position INTEGER NOT NULL,
    figures TEXT NOT NULL,
    erase INTEGER NOT NULL DEFAULT 0 CHECK (erase IN (0, 1)),
    begun_at TEXT NOT NULL
) STRICT;

CREATE INDEX archived_campaigns_to_erase ON archived_campaigns (campaign_number) WHERE erase = 1;

-- Replies and opt-outs that belong to an archived campaign: without its requests they would belong to an earlier one.
ALTER TABLE inbound_messages ADD COLUMN archived_campaign INTEGER;

ALTER TABLE unsubscribes ADD COLUMN archived_campaign INTEGER;
