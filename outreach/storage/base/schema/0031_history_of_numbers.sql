-- Everything with one number: its campaigns, single messages and calls.

-- With the number first it serves one campaign as well, and costs no other index.
DROP INDEX recipients_by_phone;

CREATE INDEX recipients_by_phone ON recipients (phone, campaign_number) WHERE phone IS NOT NULL;

CREATE INDEX messages_to_number ON messages (to_number, created_at);

CREATE INDEX calls_to_number ON calls (to_number, created_at);
