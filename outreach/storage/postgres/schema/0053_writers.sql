-- How many transactions each process has written, as the process counts them: one whose commit got no answer is found by
-- its number. PostgreSQL gives the numbers of transactions that a crash has lost to other transactions.
CREATE TABLE writers (
    writer {text} PRIMARY KEY,
    transactions BIGINT NOT NULL,
    last_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 20);
