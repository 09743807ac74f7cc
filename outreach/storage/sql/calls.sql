-- Call records.

-- find --
-- For operators' commands, which name calls alone.
SELECT {calls} FROM calls WHERE id = :call_id

-- list --
-- Newest first: identifiers sort in the order of their creation. Each filter has an index in that order.
SELECT {calls} FROM calls
WHERE workspace_id = :workspace_id
    AND campaign_number = :number  -- if given
    AND agent_id = :agent_id  -- if given
    AND status = :status  -- if given
    AND COALESCE(outcome, 'unknown') = :outcome  -- if given
    AND external_id = :external_id  -- if given
    AND {has_pair:calls.metadata|:metadata}  -- if given
    AND id < :after
ORDER BY id DESC
LIMIT :limit

-- by_provider_id --
-- Identifiers of two providers might be the same; the newest call counts.
SELECT {calls} FROM calls
WHERE workspace_id = :workspace_id AND {same:provider_call_id|:provider_call_id}
ORDER BY created_at DESC, id DESC
LIMIT 1

-- transcripts --
-- Not cached, because they are long.
SELECT call_id, content FROM transcripts WHERE workspace_id = :workspace_id AND call_id {in} {values:ids} {end}

-- put_transcript --
-- Events may come in any order, and an early one may have a part.
INSERT INTO transcripts (call_id, workspace_id, campaign_number, position, content)
VALUES (:call_id, :workspace_id, :number, :position, :content)
ON CONFLICT (call_id) DO UPDATE SET content = excluded.content
WHERE length(excluded.content) > length(transcripts.content)

-- open_of_agent --
-- The condition on the status is that of the index `calls_open`, word for word.
SELECT {calls} FROM calls
WHERE workspace_id = :workspace_id
    AND agent_id = :agent_id
    AND status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed')
ORDER BY created_at, id
LIMIT 1

-- open_call_between --
-- The condition on the status is that of the index `calls_open`, word for word.
SELECT {calls} FROM calls
WHERE workspace_id = :workspace_id
    AND agent_id = :agent_id
    AND to_number = :to_number
    AND status NOT IN ('completed', 'busy', 'no-answer', 'failed', 'canceled', 'unconfirmed')
ORDER BY created_at, id
LIMIT 1

-- to_person --
-- A number's calls, newest first.
SELECT {calls} FROM calls INDEXED BY calls_to_number
WHERE workspace_id = :workspace_id AND to_number = :phone AND (created_at, id) < (:after_at, :after_id)
ORDER BY created_at DESC, id DESC
LIMIT :limit
