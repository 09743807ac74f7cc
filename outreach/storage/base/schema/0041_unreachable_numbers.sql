-- Numbers that providers have reported as unreachable for good, and whether campaigns leave them out.
ALTER TABLE workspaces ADD COLUMN skip_unreachable {integer} NOT NULL DEFAULT 0 CHECK (skip_unreachable IN (0, 1));

CREATE TABLE unreachable_numbers (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    phone {text} NOT NULL,
    channel {text} NOT NULL,
    provider {text} NOT NULL,
    error_code {text},
    reported_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, phone, channel)
) {strict};
