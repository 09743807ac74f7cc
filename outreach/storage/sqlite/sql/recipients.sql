-- insert --
-- Run a thousand times at once: positional, with only the columns of a new recipient.
INSERT INTO recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables,
    external_id, time_zone, us_place, caller_id, status, reason, ended_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- insert_short --
-- Pending ones without optional fields.
INSERT INTO recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables, status
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- due_waiting_for --
-- For many campaigns, each in the order of the index `recipients_waiting_for`; few are sorted.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_waiting_for
    WHERE due.campaign_number = wanted.value
        AND due.status = 'waiting'
        AND due.reason = :reason
        AND due.due_at <= :now
    ORDER BY due.due_at, due.position
    LIMIT :limit
)
ORDER BY recipients.due_at, recipients.position

-- due_waiting_else --
-- In the order of the index `recipients_waiting_due`; the few that wait for that reason are skipped.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_waiting_due
    WHERE due.campaign_number = wanted.value
        AND due.status = 'waiting'
        AND due.reason IS NOT :reason
        AND due.due_at <= :now
    ORDER BY due.due_at, due.position
    LIMIT :limit
)
ORDER BY recipients.due_at, recipients.position

-- due_pending --
-- In the order of the index `recipients_pending`.
SELECT {recipients}
FROM json_each(:wanted) AS wanted
CROSS JOIN recipients ON recipients.campaign_number = wanted.value AND recipients.position IN (
    SELECT due.position FROM recipients AS due INDEXED BY recipients_pending
    WHERE due.campaign_number = wanted.value
        AND due.status = 'pending'
    ORDER BY due.position
    LIMIT :limit
)
ORDER BY recipients.position

-- with_external_id --
-- From the application's id to the few of the workspace that have it, the newest campaign first.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_external_id
CROSS JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE recipients.external_id = :external_id
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (
        campaigns.created_at < :after_at
        OR campaigns.created_at = :after_at AND (campaigns.id, recipients.position) > (:after_id, :after_position)
    )
ORDER BY campaigns.created_at DESC, campaigns.id, recipients.position
LIMIT :limit

-- of_person --
-- From a number to its places in all campaigns of the workspace, the newest campaign first.
SELECT {recipients} FROM recipients INDEXED BY recipients_by_phone
CROSS JOIN campaigns ON campaigns.number = recipients.campaign_number
WHERE recipients.phone = :phone
    AND campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (campaigns.created_at, campaigns.id, recipients.position) < (:after_at, :after_id, :after_number)
ORDER BY campaigns.created_at DESC, campaigns.id DESC, recipients.position DESC
LIMIT :limit
