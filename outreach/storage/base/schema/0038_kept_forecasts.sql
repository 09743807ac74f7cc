-- The forecasts of a campaign as they were at its start and after each change. `basis` names what was forecast: a revision
-- of the campaign, and a throttle of its provider. The content is at most 10 kB of JSON.
CREATE TABLE forecasts (
    campaign_number {integer} NOT NULL REFERENCES campaigns (number),
    basis {text} NOT NULL,
    made_at {text} NOT NULL,
    content {text} NOT NULL,
    PRIMARY KEY (campaign_number, basis)
) {strict};
