-- From how many contacts, or from which amount, people need another person's approval to start a campaign; null for none.
ALTER TABLE workspaces ADD COLUMN approve_over_contacts {integer} CHECK (approve_over_contacts >= 0);
ALTER TABLE workspaces ADD COLUMN approve_over_amount {integer} CHECK (approve_over_amount >= 0);

-- Who has changed a campaign last; null if that was before there was this column.
ALTER TABLE campaigns ADD COLUMN changed_by {text};

-- What was approved, by the revision of the campaign. The figures are JSON.
CREATE TABLE campaign_approvals (
    campaign_number {integer} NOT NULL REFERENCES campaigns (number),
    revision {integer} NOT NULL,
    approved_by {text} NOT NULL,
    approved_at {text} NOT NULL,
    figures {text} NOT NULL,
    PRIMARY KEY (campaign_number, revision)
) {strict};
