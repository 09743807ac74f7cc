-- What a list of campaigns is made of without looking at all of them. Triggers keep it, so that whatever is written, it is
-- right in the same transaction. A campaign that is still loading is in no list.

-- One row a workspace. `change` goes up whenever something changes that a list of its campaigns may show.
CREATE TABLE campaign_lists (
    number INTEGER PRIMARY KEY,
    workspace_id TEXT NOT NULL UNIQUE REFERENCES workspaces (id),
    change INTEGER NOT NULL
) STRICT;

-- How many campaigns there are.
CREATE TABLE campaign_counts (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    channel TEXT NOT NULL,
    status TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, channel, status)
) STRICT, WITHOUT ROWID;

-- Their folded names by what three characters follow each other. A row's number is that of the workspace's list,
-- shifted by 38 bits, and that of the campaign: what is searched for in one workspace is not looked for in others.
CREATE VIRTUAL TABLE campaign_names USING fts5 (name, tokenize = 'trigram case_sensitive 1', columnsize = 0);

INSERT INTO campaign_lists (workspace_id, change) SELECT id, 0 FROM workspaces;

INSERT INTO campaign_counts
SELECT workspace_id, channel, status, COUNT(*) FROM campaigns WHERE loading_until IS NULL
GROUP BY workspace_id, channel, status;

INSERT INTO campaign_names (rowid, name)
SELECT (campaign_lists.number << 38) + campaigns.number, name_folded
FROM campaigns JOIN campaign_lists USING (workspace_id) WHERE loading_until IS NULL
ORDER BY 1;

-- Newest first, of one channel, in whatever status or in one; what both channels have is merged. With `loading_until`,
-- though it is null in all of them, SQLite need not look at the campaigns themselves.
CREATE INDEX campaigns_listed ON campaigns (workspace_id, channel, created_at, id, loading_until)
WHERE loading_until IS NULL;

CREATE INDEX campaigns_listed_in_status ON campaigns (workspace_id, channel, status, created_at, id, loading_until)
WHERE loading_until IS NULL;

DROP INDEX campaigns_of_workspace;

CREATE TRIGGER workspaces_listed AFTER INSERT ON workspaces BEGIN
    INSERT INTO campaign_lists (workspace_id, change) VALUES (NEW.id, 0);
END;

CREATE TRIGGER campaigns_inserted AFTER INSERT ON campaigns WHEN NEW.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO campaign_names (rowid, name)
    SELECT (number << 38) + NEW.number, NEW.name_folded FROM campaign_lists WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_published AFTER UPDATE OF loading_until ON campaigns
WHEN OLD.loading_until IS NOT NULL AND NEW.loading_until IS NULL BEGIN
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
    INSERT INTO campaign_names (rowid, name)
    SELECT (number << 38) + NEW.number, NEW.name_folded FROM campaign_lists WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_hidden AFTER UPDATE OF loading_until ON campaigns
WHEN OLD.loading_until IS NULL AND NEW.loading_until IS NOT NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = OLD.workspace_id;
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    DELETE FROM campaign_names WHERE rowid = (
        SELECT (number << 38) + OLD.number FROM campaign_lists WHERE workspace_id = OLD.workspace_id
    );
END;

CREATE TRIGGER campaigns_deleted AFTER DELETE ON campaigns WHEN OLD.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = OLD.workspace_id;
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    DELETE FROM campaign_names WHERE rowid = (
        SELECT (number << 38) + OLD.number FROM campaign_lists WHERE workspace_id = OLD.workspace_id
    );
END;

CREATE TRIGGER campaigns_changed AFTER UPDATE ON campaigns WHEN NEW.loading_until IS NULL BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER campaigns_moved AFTER UPDATE OF status ON campaigns
WHEN OLD.status <> NEW.status AND OLD.loading_until IS NULL AND NEW.loading_until IS NULL BEGIN
    UPDATE campaign_counts SET count = count - 1
    WHERE workspace_id = OLD.workspace_id AND channel = OLD.channel AND status = OLD.status;
    INSERT INTO campaign_counts VALUES (NEW.workspace_id, NEW.channel, NEW.status, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER campaigns_renamed AFTER UPDATE OF name_folded ON campaigns
WHEN OLD.name_folded <> NEW.name_folded AND OLD.loading_until IS NULL AND NEW.loading_until IS NULL BEGIN
    UPDATE campaign_names SET name = NEW.name_folded WHERE rowid = (
        SELECT (number << 38) + NEW.number FROM campaign_lists WHERE workspace_id = NEW.workspace_id
    );
END;

-- A campaign is shown with its agent.
CREATE TRIGGER agents_changed AFTER UPDATE ON agents BEGIN
    UPDATE campaign_lists SET change = change + 1 WHERE workspace_id = NEW.workspace_id;
END;
