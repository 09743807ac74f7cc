-- Phone numbers that a workspace sends or calls from.

-- by_phone --
-- Numbers that messages and caller-ID groups name by their phone number.
SELECT {numbers}
FROM {each_row:wanted}
{join} numbers
    ON numbers.workspace_id = {part:0}
    AND numbers.phone = {part:1}
