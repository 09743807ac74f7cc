-- Campaigns that exist complete once nothing is open, as before.
ALTER TABLE campaigns ADD COLUMN stay_open {integer} NOT NULL DEFAULT 0 CHECK (stay_open IN (0, 1));

-- Of a hidden campaign whose contacts have all been loaded: the campaign that they are moved to, slice by slice.
ALTER TABLE campaigns ADD COLUMN adds_to {text};

CREATE INDEX campaigns_adding ON campaigns (adds_to) WHERE adds_to IS NOT NULL;

-- When a contact was added to a campaign that existed; null where it was loaded with its campaign.
ALTER TABLE recipients ADD COLUMN added_at {text};
