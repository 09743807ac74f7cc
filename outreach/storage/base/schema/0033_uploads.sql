-- Files that are uploaded in chunks. They are gone after a day.
CREATE TABLE uploads (
    id {text} NOT NULL,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    file_name {text} NOT NULL,
    size_bytes {integer} NOT NULL,
    received_bytes {integer} NOT NULL,
    created_at {text} NOT NULL,
    expires_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, id)
) {strict};

CREATE INDEX uploads_expiring ON uploads (expires_at);

CREATE TABLE upload_chunks (
    workspace_id {text} NOT NULL,
    upload_id {text} NOT NULL,
    start_byte {integer} NOT NULL,
    content {bytes} NOT NULL,
    PRIMARY KEY (workspace_id, upload_id, start_byte),
    FOREIGN KEY (workspace_id, upload_id) REFERENCES uploads (workspace_id, id)
) {strict};
