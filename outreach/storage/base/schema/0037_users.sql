-- Who uses the console: of the database, not of a workspace. Secrets are digests, hashes, or encrypted.
CREATE TABLE users (
    id {text} NOT NULL PRIMARY KEY,
    email {text} NOT NULL UNIQUE,
    name {text} NOT NULL,
    password {text},
    totp {text},
    totp_since {text},
    totp_step {integer},
    operator {integer} NOT NULL CHECK (operator IN (0, 1)),
    time_zone {text},
    phone {text},
    created_at {text} NOT NULL,
    last_seen_at {text},
    disabled_at {text}
) {strict};

CREATE TABLE memberships (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    user_id {text} NOT NULL REFERENCES users (id),
    role {text} NOT NULL,
    created_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) {strict};

CREATE INDEX memberships_of_user ON memberships (user_id);

-- With `ended_at` it was ended: the networks of a user's earlier logins are known by it for some months.
CREATE TABLE sessions (
    id {text} NOT NULL PRIMARY KEY,
    digest {text} NOT NULL UNIQUE,
    user_id {text} NOT NULL REFERENCES users (id),
    created_at {text} NOT NULL,
    seen_at {text} NOT NULL,
    expires_at {text} NOT NULL,
    verified_at {text} NOT NULL,
    address {text} NOT NULL,
    agent {text} NOT NULL,
    second_factor {text} NOT NULL,
    ended_at {text}
) {strict};

CREATE INDEX sessions_of_user ON sessions (user_id, created_at);

CREATE INDEX sessions_by_age ON sessions (created_at);

CREATE TABLE invitations (
    id {text} NOT NULL PRIMARY KEY,
    digest {text} NOT NULL UNIQUE,
    kind {text} NOT NULL,
    email {text},
    workspace_id {text} REFERENCES workspaces (id),
    role {text},
    user_id {text} REFERENCES users (id),
    made_by {text} NOT NULL,
    created_at {text} NOT NULL,
    expires_at {text} NOT NULL,
    used_at {text}
) {strict};

CREATE INDEX invitations_of_workspace ON invitations (workspace_id, created_at);

CREATE INDEX invitations_by_expiry ON invitations (expires_at);

CREATE TABLE recovery_codes (
    user_id {text} NOT NULL REFERENCES users (id),
    digest {text} NOT NULL,
    used_at {text},
    PRIMARY KEY (user_id, digest)
) {strict};

CREATE TABLE login_failures (
    bucket {text} NOT NULL PRIMARY KEY,
    count {integer} NOT NULL,
    last_at {text} NOT NULL
) {strict};

CREATE INDEX login_failures_by_age ON login_failures (last_at);
