-- How many transactions have written in each workspace, apart from those that write in all of them, which the row `fence`
-- counts. A process whose count is another has cached rows that others may have changed. The key is a hash of the
-- workspace's identifier, as of the advisory lock that a transaction takes before it writes there.
CREATE TABLE workspace_versions (
    key BIGINT PRIMARY KEY,
    version BIGINT NOT NULL
) WITH (fillfactor = 20);

-- How many transactions the process had written before its last one: fewer than it knows of shows that a server has lost some.
ALTER TABLE writers ADD COLUMN before BIGINT;

-- Refuses a transaction that has stored identifiers of a provider's answers, where another one, of other workspaces, has
-- stored one of them meanwhile. It runs again, and finds it.
CREATE FUNCTION refuse_taken_answers(providers TEXT[], ids TEXT[], own_workspaces TEXT[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(providers, ids) AS given (provider, provider_id)
        JOIN dispatches ON left(dispatches.provider_id, 200) = left(given.provider_id, 200)
            AND dispatches.provider_id = given.provider_id
            AND dispatches.provider = given.provider
            AND dispatches.workspace_id <> ALL (own_workspaces)
    ) THEN
        RAISE serialization_failure USING MESSAGE = 'another workspace has stored the identifier of an answer meanwhile';
    END IF;
END
$$;
