-- What an SMS segment or a minute of a call costs a workspace, by provider and country, as a JSON array.
CREATE TABLE price_tables (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    currency TEXT NOT NULL,
    prices TEXT NOT NULL
) STRICT;
