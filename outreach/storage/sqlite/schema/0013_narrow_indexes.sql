-- Fewer indexes, and narrower ones: every message pays for each of them. None ends with what only breaks ties, and none
-- begins with the workspace where what follows is rare enough.

DROP INDEX dispatches_to_number;

CREATE INDEX dispatches_to_number ON dispatches (to_number, created_at);

DROP INDEX dispatches_of_campaign;

CREATE INDEX dispatches_of_campaign ON dispatches (campaign_number, created_at) WHERE campaign_number IS NOT NULL;

-- Both kinds of open requests in one: each message comes and goes here.
DROP INDEX dispatches_dispatching;

DROP INDEX dispatches_unknown;

CREATE INDEX dispatches_open ON dispatches (state, created_at, id) WHERE state IN ('dispatching', 'unknown');

-- Who waits is closed in the order of the due times, for which there is an index already.
DROP INDEX recipients_waiting;

-- How many are in flight, and whose receipt has been waited for long enough.
DROP INDEX recipients_in_flight;

DROP INDEX recipients_in_progress_due;

CREATE INDEX recipients_in_flight ON recipients (campaign_number, status, due_at, position)
WHERE status IN ('dispatching', 'in_progress', 'unknown');

-- The old ones are swept workspace by workspace.
DROP INDEX callbacks_by_age;

DROP INDEX callbacks_by_time;

CREATE INDEX callbacks_by_time ON callbacks (workspace_id, received_at);

DROP INDEX inbound_messages_by_time;

CREATE INDEX inbound_messages_by_time ON inbound_messages (workspace_id, received_at);

DROP INDEX inbound_messages_unclear;

CREATE INDEX inbound_messages_unclear ON inbound_messages (workspace_id, received_at) WHERE unclear = 1;

-- The number is the row's own, which every index ends with.
DROP INDEX audit_of_workspace;

CREATE INDEX audit_of_workspace ON audit (workspace_id);

-- No agent is ever deleted, and nobody asks for the campaigns of one.
DROP INDEX campaigns_of_agent;
