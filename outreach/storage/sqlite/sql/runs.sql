-- What dispatching a campaign remembers across restarts.

-- get --
-- One campaign's.
SELECT
    campaigns.workspace_id,
    campaigns.id AS campaign_id,
    runs.owner_epoch,
    runs.next_slot_at,
    runs.assigned,
    runs.held_under
FROM campaigns
JOIN runs ON runs.campaign_number = campaigns.number
WHERE campaigns.id = :campaign_id AND campaigns.workspace_id = :workspace_id

-- put --
-- Over what was remembered; nothing where the workspace has no such campaign. `WHERE` also parts ON from JOIN.
INSERT INTO runs (campaign_number, owner_epoch, next_slot_at, assigned, held_under)
SELECT number, :owner_epoch, :next_slot_at, :assigned, :held_under
FROM campaigns WHERE id = :campaign_id AND workspace_id = :workspace_id
ON CONFLICT (campaign_number) DO UPDATE SET
    owner_epoch = excluded.owner_epoch,
    next_slot_at = excluded.next_slot_at,
    assigned = excluded.assigned,
    held_under = excluded.held_under

-- sender_slot --
-- The first moment at which a sending number may send its next message.
SELECT next_slot_at FROM sender_paces WHERE workspace_id = :workspace_id AND phone = :phone

-- put_sender_slot --
-- Over what was remembered.
INSERT INTO sender_paces (workspace_id, phone, next_slot_at) VALUES (:workspace_id, :phone, :next_slot_at)
ON CONFLICT (workspace_id, phone) DO UPDATE SET next_slot_at = excluded.next_slot_at
