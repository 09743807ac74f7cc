-- Requests that an operator has decided about, for taking the decisions back.
CREATE INDEX dispatches_decided ON dispatches (workspace_id, created_at, id)
    WHERE state = 'given_up' OR reason = 'assumed_sent';
