-- Single messages; those of campaigns live in the ledger alone.

-- last_reply --
-- Answers to keywords are bounded; the condition on the purpose lets the index of answers serve.
SELECT max(created_at) FROM messages
WHERE workspace_id = :workspace_id AND to_number = :phone AND purpose = :purpose AND purpose <> 'message'
