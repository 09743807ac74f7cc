-- The unsubscribe register.

-- list --
-- Paged in the order of the key: the register may hold millions.
SELECT {unsubscribes} FROM unsubscribes
WHERE workspace_id = :workspace_id AND phone > :after
ORDER BY phone
LIMIT :limit

-- stopped_since --
-- The few entries that came while a campaign was loaded.
SELECT phone FROM unsubscribes INDEXED BY unsubscribes_by_time
WHERE workspace_id = :workspace_id AND created_at >= :since AND scope IN ('all', :channel)

-- held --
-- Numbers under review, the latest first; few, with an index of their own.
SELECT {unsubscribes} FROM unsubscribes
WHERE scope = 'held'
    AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id::text)
    AND (created_at, workspace_id, phone) < (:after_at, :after_workspace, :after_phone)
ORDER BY created_at DESC, workspace_id DESC, phone DESC
LIMIT :limit

-- keep_campaign --
-- The entry that replaces others belongs to the campaign that they were assigned to.
UPDATE unsubscribes SET archived_campaign = (
    SELECT MAX(former.archived_campaign) FROM unsubscribes AS former
    WHERE former.workspace_id = :workspace_id AND former.phone {in} {values:replaced} {end}
)
WHERE workspace_id = :workspace_id AND phone = :phone
