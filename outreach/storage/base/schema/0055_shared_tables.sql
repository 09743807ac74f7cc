-- The tables that are the same in every database and refer only to each other, with their indexes and first rows.
-- `0056_own_tables` beside each backend has the tables that differ. `0057_dependent_tables` has those that refer to them.
--
-- Timestamps are texts in UTC of one width (2026-11-20T16:10:25.000000Z), so that they sort as the moments do. Booleans
-- are 0 and 1. Columns that hold JSON hold it as text, to the letter. Phone numbers named `phone` are E.164.
--
-- Every message pays for each index.

-- `retention_days`: after so many days contacts and texts of what has ended are erased; null keeps them.
-- `skip_unreachable`: campaigns leave out numbers that providers have reported as unreachable for good.
-- `narrower_hours`: contact hours of countries and states, as JSON.
-- `approve_over_contacts`, `approve_over_amount`: from so many contacts, or from this amount, people need another
-- person's approval to start a campaign; null for none.
-- `managers_export`: managers may export personal data.
CREATE TABLE workspaces (
    id {text} NOT NULL PRIMARY KEY,
    name {text} NOT NULL,
    mode {text} NOT NULL,
    status {text} NOT NULL,
    sms_campaigns_enabled {integer} NOT NULL CHECK (sms_campaigns_enabled IN (0, 1)),
    request_limit {integer},
    default_region {text},
    contact_hours {integer} NOT NULL CHECK (contact_hours IN (0, 1)),
    frequency_cap {integer},
    revision {integer} NOT NULL,
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    retention_days {integer},
    skip_unreachable {integer} NOT NULL DEFAULT 0 CHECK (skip_unreachable IN (0, 1)),
    narrower_hours {text} NOT NULL DEFAULT '[]',
    approve_over_contacts {integer} CHECK (approve_over_contacts >= 0),
    approve_over_amount {integer} CHECK (approve_over_amount >= 0),
    managers_export {integer} NOT NULL DEFAULT 1 CHECK (managers_export IN (0, 1))
) {strict};

-- With `removed_at` it was removed: campaigns and calls that are over still name it. So do trunks and flows.
CREATE TABLE agents (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    name {text} NOT NULL,
    provider {text} NOT NULL,
    provider_agent_id {text},
    direction {text} NOT NULL,
    allow_outbound {integer} NOT NULL CHECK (allow_outbound IN (0, 1)),
    is_active {integer} NOT NULL CHECK (is_active IN (0, 1)),
    placeholders {text},
    from_number {text},
    voicemail {text},
    voicemail_message {text},
    max_call_seconds {integer},
    revision {integer} NOT NULL,
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX agents_of_workspace ON agents (workspace_id);

CREATE TABLE trunks (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    name {text} NOT NULL,
    address {text} NOT NULL,
    provider_trunk_id {text},
    created_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX trunks_of_workspace ON trunks (workspace_id);

CREATE TABLE numbers (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    phone {text} NOT NULL,
    carrier {text},
    trunk_id {text} REFERENCES trunks (id),
    rate_per_minute {integer},
    created_at {text} NOT NULL,
    UNIQUE (workspace_id, phone)
) {strict};

CREATE TABLE flows (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    name {text} NOT NULL,
    steps {text} NOT NULL,
    created_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX flows_of_workspace ON flows (workspace_id);

CREATE TABLE sms_settings (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    footer_enabled {integer} NOT NULL CHECK (footer_enabled IN (0, 1)),
    footer_text {text} NOT NULL,
    max_segments {integer} NOT NULL,
    retry_enabled {integer} NOT NULL CHECK (retry_enabled IN (0, 1)),
    retry_max_attempts {integer} NOT NULL,
    retry_delay_minutes {integer} NOT NULL,
    custom_variables {text} NOT NULL,
    revision {integer} NOT NULL
) {strict};

CREATE TABLE call_settings (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    retry_max_attempts {integer} NOT NULL,
    retry_delay_minutes {integer} NOT NULL
) {strict};

CREATE TABLE reply_settings (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    enabled {integer} NOT NULL CHECK (enabled IN (0, 1)),
    stop_text {text} NOT NULL,
    start_text {text} NOT NULL,
    help_text {text} NOT NULL,
    help_when_opted_out {integer} NOT NULL CHECK (help_when_opted_out IN (0, 1))
) {strict};

-- Prices of SMS segments and of minutes of calls, by provider and country, as a JSON array.
CREATE TABLE price_tables (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    currency {text} NOT NULL,
    prices {text} NOT NULL
) {strict};

-- Accounts at carriers and voice providers; the credentials are encrypted with a key that is not in this database.
-- `last_report_at`: when the provider last reported by a callback, to some minutes.
CREATE TABLE accounts (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    provider {text} NOT NULL,
    sealed {text} NOT NULL,
    replies_to_keywords {integer} NOT NULL CHECK (replies_to_keywords IN (0, 1)),
    revision {integer} NOT NULL,
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    last_report_at {text},
    UNIQUE (workspace_id, provider)
) {strict};

-- Provider throttles of a workspace, with an account there or, in a sandbox, without one.
CREATE TABLE provider_throttles (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    provider {text} NOT NULL,
    since {text} NOT NULL,
    until {text} NOT NULL,
    refusals {integer} NOT NULL,
    PRIMARY KEY (workspace_id, provider)
) {strict_by_key};

CREATE TABLE unsubscribes (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    phone {text} NOT NULL,
    scope {text} NOT NULL,
    source {text} NOT NULL,
    evidence {text},
    created_at {text} NOT NULL,
    archived_campaign {integer},
    PRIMARY KEY (workspace_id, phone)
) {strict_by_key};

CREATE INDEX unsubscribes_by_time ON unsubscribes (workspace_id, created_at);

CREATE INDEX unsubscribes_to_hash ON unsubscribes (workspace_id, created_at)
WHERE substr(phone, 1, 1) <> '#' AND scope <> 'held';

-- The numbers that are held until a person has decided: few in a register of millions.
CREATE INDEX unsubscribes_held ON unsubscribes (created_at, workspace_id, phone) WHERE scope = 'held';

-- Numbers of erased people stay on the register as hashes with their workspace's salt; without a row there are none.
CREATE TABLE register_salts (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    salt {text} NOT NULL
) {strict_by_key};

-- Numbers that providers have reported as unreachable for good.
CREATE TABLE unreachable_numbers (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    phone {text} NOT NULL,
    channel {text} NOT NULL,
    provider {text} NOT NULL,
    error_code {text},
    reported_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, phone, channel)
) {strict};

-- `external_id` and `metadata` are the application's: its own identifier, and a JSON object. Campaigns and calls have them
-- too.
CREATE TABLE messages (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    to_number {text} NOT NULL,
    from_number {text},
    carrier {text} NOT NULL,
    body {text} NOT NULL,
    segments {integer} NOT NULL,
    status {text} NOT NULL,
    reason {text},
    attempts {integer} NOT NULL,
    tries {integer} NOT NULL,
    provider_id {text},
    purpose {text} NOT NULL,
    send_until {text},
    created_at {text} NOT NULL,
    ended_at {text},
    external_id {text},
    metadata {text}
) {strict};

-- Answers to keywords are few among the messages. Queries ask when a number got its last one.
CREATE INDEX messages_replies ON messages (workspace_id, to_number, purpose, created_at) WHERE purpose <> 'message';

-- A workspace's messages are listed newest first: identifiers sort in the order of their creation.
CREATE INDEX messages_of_workspace ON messages (workspace_id, id);

CREATE INDEX messages_to_erase ON messages (workspace_id, ended_at) WHERE ended_at IS NOT NULL AND to_number <> '';

CREATE INDEX messages_to_number ON messages (to_number, created_at);

-- Lists by the application's identifier, or by metadata, newest first.
CREATE INDEX messages_by_external_id ON messages (workspace_id, external_id, id) WHERE external_id IS NOT NULL;

CREATE INDEX messages_with_metadata ON messages (workspace_id, id) WHERE metadata IS NOT NULL;

-- Callbacks of providers, as they came: each event once, so that one that comes again changes nothing.
-- `report` is an unmatched event, as JSON, until a dispatch turns out to have the identifier that it names.
CREATE TABLE callbacks (
    account_id {text} NOT NULL,
    event_id {text} NOT NULL,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    result {text} NOT NULL,
    body {bytes} NOT NULL,
    received_at {text} NOT NULL,
    report {text},
    PRIMARY KEY (account_id, event_id)
) {strict};

-- The pace of a sending number, over all campaigns that share it.
CREATE TABLE sender_paces (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    phone {text} NOT NULL,
    next_slot_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, phone)
) {strict_by_key};

-- How many campaigns a workspace has, for its lists. Triggers keep the counts.
CREATE TABLE campaign_counts (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    channel {text} NOT NULL,
    status {text} NOT NULL,
    count {integer} NOT NULL,
    PRIMARY KEY (workspace_id, channel, status)
) {strict_by_key};

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

CREATE INDEX schedules_paused ON schedules (workspace_id, id)
WHERE state = 'paused' AND removed_at IS NULL AND reason <> 'operator';

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

-- Files that contacts and requests of ended campaigns were moved into.
CREATE TABLE archives (
    id {text} NOT NULL PRIMARY KEY,
    file {text} NOT NULL,
    created_at {text} NOT NULL
) {strict};

-- Readers of events by name: how far each has come, and which process reads now.
CREATE TABLE subscriptions (
    name {text} PRIMARY KEY,
    workspace_id {text} REFERENCES workspaces (id),
    position {integer} NOT NULL,
    gap_until {integer} NOT NULL,
    holder {text},
    held_until {text},
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL
) {strict_by_key};

-- Endpoints of applications, and how far the deliveries of events have come to each of them. The types are JSON.
CREATE TABLE webhooks (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    url {text} NOT NULL,
    description {text} NOT NULL,
    types {text} NOT NULL,
    payload {text} NOT NULL CHECK (payload IN ('thin', 'full')),
    concurrency {integer} NOT NULL,
    state {text} NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
    reason {text},
    created_at {text} NOT NULL,
    updated_at {text} NOT NULL,
    removed_at {text}
) {strict};

CREATE INDEX webhooks_of_workspace ON webhooks (workspace_id);

CREATE INDEX webhooks_in_use ON webhooks (state, id) WHERE removed_at IS NULL;

CREATE TABLE webhook_cursors (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    sealed {text} NOT NULL,
    position {integer} NOT NULL,
    gap_until {integer} NOT NULL,
    failures {integer} NOT NULL,
    failing_since {text},
    probe_at {text},
    holder {text},
    held_until {text},
    updated_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id)
) {strict};

CREATE TABLE webhook_holds (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    number {integer} NOT NULL,
    key {text} NOT NULL,
    attempts {integer} NOT NULL,
    next_at {text} NOT NULL,
    first_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, number)
) {strict};

CREATE TABLE webhook_attempts (
    id {text} NOT NULL PRIMARY KEY,
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    webhook_id {text} NOT NULL REFERENCES webhooks (id),
    number {integer} NOT NULL,
    type {text} NOT NULL,
    at {text} NOT NULL,
    duration_ms {integer} NOT NULL,
    status {integer},
    error {text},
    answer {text} NOT NULL
) {strict};

CREATE INDEX webhook_attempts_of_webhook ON webhook_attempts (workspace_id, webhook_id, id);

-- The highest number of the trail's entries that were deleted by hand: a reader before it has missed some.
CREATE TABLE trail_purged (
    id {integer} PRIMARY KEY CHECK (id = 1),
    until {integer} NOT NULL
) {strict};

INSERT INTO trail_purged (id, until) VALUES (1, 0);

-- Users of the console. They belong to the database, not to a workspace. Secrets are digests, hashes, or encrypted.
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

CREATE TABLE request_windows (
    workspace_id {text} NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    started_at {text} NOT NULL,
    count {integer} NOT NULL
) {strict};

CREATE TABLE idempotency_keys (
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    operation {text} NOT NULL,
    key {text} NOT NULL,
    fingerprint {text} NOT NULL,
    token {text} NOT NULL,
    answer {bytes},
    location {text},
    locked_until {text} NOT NULL,
    expires_at {text} NOT NULL,
    PRIMARY KEY (workspace_id, operation, key)
) {strict};

CREATE INDEX idempotency_keys_expiring ON idempotency_keys (expires_at);

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

-- Due work and the latest changes: a unit has the number of its latest change as key.
CREATE TABLE work (
    change {integer} PRIMARY KEY,
    kind {text} NOT NULL,
    workspace_id {text} NOT NULL,
    unit_id {text} NOT NULL,
    due_at {text},
    UNIQUE (kind, workspace_id, unit_id)
) {strict};

CREATE INDEX work_due ON work (due_at, change) WHERE due_at IS NOT NULL;

CREATE INDEX work_done ON work (change) WHERE due_at IS NULL AND kind IN ('call', 'message');

-- Kept apart from the work, so that numbers go on rising when the latest unit is forgotten.
CREATE TABLE last_change (
    id {integer} PRIMARY KEY CHECK (id = 1),
    change {integer} NOT NULL
) {strict};

INSERT INTO last_change (id, change) VALUES (1, 0);

-- How many stops there have been in each workspace: opt-outs, pauses, suspensions, providers that asked to wait. The
-- workspace '' counts those for all, such as takeovers.
CREATE TABLE stop_counts (
    workspace_id {text} NOT NULL PRIMARY KEY,
    number {integer} NOT NULL
) {strict};

INSERT INTO stop_counts (workspace_id, number) VALUES ('', 0);

-- One row for good: a copy keeps it, a new database has another.
CREATE TABLE database_identity (
    id {text} NOT NULL PRIMARY KEY
) {strict};

-- Since `quarantine_epoch` the database has been kept from sending by itself. Between the two `steady` moments the wall
-- clock is known to have run without a step, by the holder of the lease.
CREATE TABLE lease (
    id {integer} PRIMARY KEY CHECK (id = 1),
    epoch {integer} NOT NULL,
    host {text},
    path {text},
    renewed_at {text} NOT NULL,
    quarantine_reason {text},
    quarantine_epoch {integer},
    steady_since {text},
    steady_until {text}
) {strict};

CREATE TABLE home (
    id {integer} PRIMARY KEY CHECK (id = 1),
    host {text} NOT NULL,
    path {text} NOT NULL
) {strict};

-- Each worker has a lease of its own, by the clock of the database. The permits are its shares of the intents and
-- requests that all workers together may have open.
CREATE TABLE workers (
    epoch {integer} PRIMARY KEY,
    place {integer} NOT NULL,
    renewed_at {text} NOT NULL,
    until {text} NOT NULL,
    intent_permits {integer} NOT NULL DEFAULT 0,
    request_permits {integer} NOT NULL DEFAULT 0
) {strict};
