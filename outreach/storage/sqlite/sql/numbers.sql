-- Phone numbers that a workspace sends or calls from.

-- by_phone --
-- Numbers that messages and caller-ID groups name by their phone number.
SELECT {numbers}
FROM json_each(:wanted) AS wanted
CROSS JOIN numbers
    ON numbers.workspace_id = json_extract(wanted.value, '$[0]')
    AND numbers.phone = json_extract(wanted.value, '$[1]')

-- list --
-- The first number of a carrier, which POST /sms sends from.
SELECT {numbers} FROM numbers WHERE workspace_id = :workspace_id ORDER BY created_at, id
