-- How many stops there have been in each workspace: opt-outs, pauses, suspensions, providers that asked to wait. The
-- workspace '' counts those for all, such as takeovers.
CREATE TABLE stop_counts (
    workspace_id {text} NOT NULL PRIMARY KEY,
    number {integer} NOT NULL
) {strict};

INSERT INTO stop_counts (workspace_id, number) SELECT '', number FROM stops;

DROP TABLE stops;
