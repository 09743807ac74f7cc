-- What a provider tells of a call, and verdicts that come later. Transcripts have a table of their own: they are long, and
-- lists of calls do not read them.
ALTER TABLE calls ADD COLUMN cost {text};

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
