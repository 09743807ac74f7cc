-- callbacks_of_person --
-- The same for events, which hold the number in the provider's own notation.
SELECT json_build_array(account_id, event_id)::text AS rowid FROM callbacks
WHERE workspace_id = :workspace_id AND position(convert_to(:digits::text, 'UTF8') IN body) > 0
LIMIT :limit

-- person_in_callbacks --
-- The event stays known, so that it is not taken for a new one.
UPDATE callbacks SET body = '', report = NULL
FROM json_array_elements_text(:ids::json) AS wanted (value)
WHERE workspace_id = :workspace_id
    AND account_id = wanted.value::json ->> 0
    AND event_id = wanted.value::json ->> 1
