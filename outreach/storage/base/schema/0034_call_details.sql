-- What a provider tells of a call, verdicts that come later, and filters of lists. Transcripts have a table of their own: they are long, and
-- lists of calls do not read them.
-- In millionths of the currency, which add up exactly.
ALTER TABLE calls ADD COLUMN cost {integer};

ALTER TABLE calls ADD COLUMN cost_currency {text};

ALTER TABLE calls ADD COLUMN judged_at {text};

CREATE TABLE transcripts (
    call_id {text} NOT NULL PRIMARY KEY REFERENCES calls (id),
    workspace_id {text} NOT NULL REFERENCES workspaces (id),
    campaign_number {integer} REFERENCES campaigns (number),
    position {integer},
    content {text} NOT NULL
) {strict};

CREATE INDEX transcripts_of_recipient ON transcripts (campaign_number, position) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_of_campaign ON calls (campaign_number, id) WHERE campaign_number IS NOT NULL;

CREATE INDEX calls_of_agent ON calls (workspace_id, agent_id, id);

CREATE INDEX calls_by_status ON calls (workspace_id, status, id);

CREATE INDEX calls_by_outcome ON calls (workspace_id, (COALESCE(outcome, 'unknown')), id);
