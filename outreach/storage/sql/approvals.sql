-- The approvals of campaigns' starts by a second person.

-- put --
-- Contacts may have been added to an approved revision.
INSERT INTO campaign_approvals (campaign_number, revision, approved_by, approved_at, figures)
VALUES (:number, :revision, :approved_by, :approved_at, :figures)
ON CONFLICT (campaign_number, revision)
DO UPDATE SET approved_by = excluded.approved_by, approved_at = excluded.approved_at, figures = excluded.figures

-- get --
-- By the key.
SELECT approved_by, approved_at, figures FROM campaign_approvals WHERE campaign_number = :number AND revision = :revision

-- any --
-- By the key.
SELECT 1 FROM campaign_approvals WHERE campaign_number = :number LIMIT 1

-- delete --
-- By the key.
DELETE FROM campaign_approvals WHERE campaign_number = :number
