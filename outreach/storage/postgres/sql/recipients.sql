-- insert --
-- Thousands at once, with only the columns of a new recipient.
COPY recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables,
    external_id, time_zone, us_place, caller_id, status, reason, ended_at
) FROM STDIN

-- insert_short --
-- Pending ones without optional fields.
COPY recipients (
    campaign_number, position, phone_number, phone, first_name, last_name, email, company, custom_variables, status
) FROM STDIN

-- due_waiting_for --
-- For many campaigns, each in the order of the index `recipients_waiting_for`; few are sorted.
SELECT {recipients}
FROM json_array_elements_text(:wanted::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT due.* FROM recipients AS due
    WHERE due.campaign_number = wanted.value::bigint
        AND due.status = 'waiting'
        AND due.reason = :reason
        AND due.due_at <= :now
    ORDER BY due.due_at NULLS FIRST, due.position
    LIMIT :limit
) AS recipients
ORDER BY recipients.due_at, recipients.position

-- due_waiting_else --
-- In the order of the index `recipients_waiting_due`; the few that wait for that reason are skipped.
SELECT {recipients}
FROM json_array_elements_text(:wanted::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT due.* FROM recipients AS due
    WHERE due.campaign_number = wanted.value::bigint
        AND due.status = 'waiting'
        AND due.reason IS DISTINCT FROM :reason
        AND due.due_at <= :now
    ORDER BY due.due_at NULLS FIRST, due.position
    LIMIT :limit
) AS recipients
ORDER BY recipients.due_at, recipients.position

-- due_pending --
-- In the order of the index `recipients_pending`.
SELECT {recipients}
FROM json_array_elements_text(:wanted::json) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT due.* FROM recipients AS due
    WHERE due.campaign_number = wanted.value::bigint
        AND due.status = 'pending'
    ORDER BY due.position
    LIMIT :limit
) AS recipients
ORDER BY recipients.position

-- with_external_id --
-- From the application's id to the few of the workspace that have it, the newest campaign first.
SELECT {recipients}
FROM (
    SELECT * FROM recipients
    WHERE left(external_id, 200) = left(:external_id, 200) AND external_id = :external_id
    OFFSET 0
) AS recipients
CROSS JOIN LATERAL (
    SELECT * FROM campaigns WHERE campaigns.number = recipients.campaign_number OFFSET 0
) AS campaigns
WHERE campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (
        campaigns.created_at < :after_at
        OR campaigns.created_at = :after_at AND (campaigns.id, recipients.position) > (:after_id, :after_position)
    )
ORDER BY campaigns.created_at DESC, campaigns.id, recipients.position
LIMIT :limit

-- of_person --
-- From a number to its places in all campaigns of the workspace, the newest campaign first.
SELECT {recipients}
FROM (
    SELECT * FROM recipients WHERE phone = :phone OFFSET 0
) AS recipients
CROSS JOIN LATERAL (
    SELECT * FROM campaigns WHERE campaigns.number = recipients.campaign_number OFFSET 0
) AS campaigns
WHERE campaigns.workspace_id = :workspace_id
    AND campaigns.loading_until IS NULL
    AND (campaigns.created_at, campaigns.id, recipients.position) < (:after_at, :after_id, :after_number)
ORDER BY campaigns.created_at DESC, campaigns.id DESC, recipients.position DESC
LIMIT :limit
