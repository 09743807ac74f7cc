-- How many stops there have been: opt-outs, pauses, suspensions, providers that asked to wait, takeovers.
CREATE TABLE stops (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL
) STRICT;

INSERT INTO stops (id, number) VALUES (1, 0);
