-- Phone numbers that a workspace sends or calls from.

-- by_phone --
-- Numbers that messages and caller-ID groups name by their phone number.
SELECT {numbers}
FROM json_array_elements(:wanted::json) AS wanted (value)
JOIN numbers ON numbers.workspace_id = wanted.value ->> 0 AND numbers.phone = wanted.value ->> 1

-- list --
-- The first number of a carrier, which POST /sms sends from.
SELECT {numbers} FROM numbers WHERE workspace_id = :workspace_id ORDER BY created_at, id
