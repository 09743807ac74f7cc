-- Users, their roles, sessions, invitations, recovery codes and failed logins.

-- any_user --
-- Whether the first-run set-up is closed.
SELECT {users} FROM users LIMIT 1

-- by_email --
-- At a login.
SELECT {users} FROM users WHERE email = :email

-- page_of_users --
-- For operators; oldest first, as identifiers are.
SELECT {users} FROM users WHERE id > :after ORDER BY id LIMIT :limit

-- of_workspace --
-- Who has a role in a workspace: few.
SELECT {memberships} FROM memberships WHERE workspace_id = :workspace_id ORDER BY created_at, user_id

-- of_user --
-- The workspaces of a user: few.
SELECT {memberships} FROM memberships WHERE user_id = :user_id ORDER BY created_at, workspace_id

-- session_by_digest --
-- At each request of a browser.
SELECT {sessions} FROM sessions WHERE digest = :digest

-- sessions_of_user --
-- The latest logins, ended ones included.
SELECT {sessions} FROM sessions WHERE user_id = :user_id ORDER BY created_at DESC, id DESC LIMIT :limit

-- open_sessions --
-- How many logins of some users last: as `Session.is_open`.
SELECT user_id, COUNT(*) FROM sessions
WHERE user_id {in} {values:ids} {end} AND ended_at IS NULL AND expires_at > :now AND seen_at > :idle_since
GROUP BY user_id

-- end_sessions_of_user --
-- All but one; none has an empty identifier.
UPDATE sessions SET ended_at = :now WHERE user_id = :user_id AND ended_at IS NULL AND id <> :but

-- end_all_sessions --
-- After a restore, which brings back those that were ended since.
UPDATE sessions SET ended_at = :now WHERE ended_at IS NULL

-- sweep_sessions --
-- In slices, the oldest first.
DELETE FROM sessions WHERE {row} {in}
    SELECT {row} FROM sessions WHERE created_at < :before ORDER BY created_at LIMIT :limit
{end}

-- invitation_by_digest --
-- The link of an invitation.
SELECT {invitations} FROM invitations WHERE digest = :digest

-- invitations_of_workspace --
-- Of one workspace, or with NULL those without one: few, because old ones are deleted.
SELECT {invitations} FROM invitations WHERE workspace_id {is} :workspace_id::text ORDER BY created_at, id

-- withdraw_all_invitations --
-- After a restore, as sessions. Links of the set-up last an hour, and are of no use once there is a user.
UPDATE invitations SET used_at = :now WHERE used_at IS NULL AND kind <> 'setup'

-- sweep_invitations --
-- In slices, the first to expire first.
DELETE FROM invitations WHERE {row} {in}
    SELECT {row} FROM invitations WHERE expires_at < :before ORDER BY expires_at LIMIT :limit
{end}

-- delete_codes --
-- Before new ones are made.
DELETE FROM recovery_codes WHERE user_id = :user_id

-- unused_codes --
-- How many are left.
SELECT COUNT(*) FROM recovery_codes WHERE user_id = :user_id AND used_at IS NULL

-- sweep_failures --
-- In slices, the oldest first.
DELETE FROM login_failures WHERE {row} {in}
    SELECT {row} FROM login_failures WHERE last_at < :before ORDER BY last_at LIMIT :limit
{end}
