-- Provider throttles of a workspace, with an account there or, in a sandbox, without one.
CREATE TABLE account_holds (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    provider TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT NOT NULL,
    refusals INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, provider)
) STRICT, WITHOUT ROWID;
