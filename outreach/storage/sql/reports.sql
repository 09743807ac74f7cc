-- Figures of reports, by sets. A report of a million contacts must take less than a second, and looking at each row is what
-- costs: of the most frequent result there are totals only, and the others are found by indexes of their own.

-- results --
-- Contacts by result, without those of the plain good end. The ended ones are read in an index, without a look at their
-- rows, the open ones through the indexes of their states, whose conditions stand here word for word.
SELECT status, reason, COUNT(*), SUM(dispatched)::bigint
FROM recipients INDEXED BY recipients_not_plain
WHERE campaign_number = :number
    AND status <> 'pending'
    AND status <> 'waiting'
    AND status <> 'dispatching'
    AND status <> 'in_progress'
    AND status <> 'unknown'
    AND (status <> 'completed' OR reason IS NOT NULL OR dispatched = 0)
GROUP BY status, reason
UNION ALL
SELECT status, reason, COUNT(*), SUM(dispatched)::bigint
FROM (
    SELECT status, reason, dispatched FROM recipients INDEXED BY recipients_pending
    WHERE campaign_number = :number AND status = 'pending'
    UNION ALL
    SELECT status, reason, dispatched FROM recipients INDEXED BY recipients_waiting_for
    WHERE campaign_number = :number AND status = 'waiting'
    UNION ALL
    SELECT status, reason, dispatched FROM recipients INDEXED BY recipients_in_flight
    WHERE campaign_number = :number AND status IN ('dispatching', 'in_progress', 'unknown')
) AS open
GROUP BY status, reason
ORDER BY status, reason NULLS FIRST

-- accepted --
-- The accepted messages without a reason or a code, in one pass: their provider, how many, delivered, failed, segments,
-- and whether another provider has some too.
SELECT
    MIN(provider),
    COUNT(*),
    COUNT(*) FILTER (WHERE report = 'delivered'),
    COUNT(*) FILTER (WHERE report IN ('failed', 'canceled')),
    COALESCE(SUM(segments), 0)::bigint,
    MIN(provider) <> MAX(provider)
FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number AND state = 'accepted' AND reason IS NULL AND error_code IS NULL

-- accepted_by_place --
-- The same by provider and, if prices depend on it, by the digits that decide about the country: the area code in North
-- America, else five digits behind the calling code. One number of each group stands for all; of an erased number only the
-- country is left.
SELECT
    provider,
    MAX(COALESCE(country, to_number)),
    COUNT(*),
    COUNT(*) FILTER (WHERE report = 'delivered'),
    COUNT(*) FILTER (WHERE report IN ('failed', 'canceled')),
    COALESCE(SUM(segments), 0)::bigint
FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number AND state = 'accepted' AND reason IS NULL AND error_code IS NULL
GROUP BY
    provider,
    CASE WHEN :by_country::boolean THEN COALESCE(
        country, substr(to_number, 1, CASE substr(to_number, 1, 2) WHEN '+1' THEN 5 WHEN '+7' THEN 7 ELSE 8 END)
    ) END
ORDER BY 1, 2

-- by_sender --
-- Messages of a campaign with a sender pool, by number: the rows are looked at, as few campaigns have one.
SELECT
    from_number,
    COUNT(*),
    COUNT(*) FILTER (WHERE state = 'accepted'),
    COUNT(*) FILTER (WHERE state = 'accepted' AND report = 'delivered'),
    COUNT(*) FILTER (WHERE state = 'accepted' AND report IN ('failed', 'canceled')),
    COUNT(*) FILTER (WHERE state = 'refused')
FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number AND from_number IS NOT NULL
GROUP BY from_number
ORDER BY 1

-- others --
-- All other messages, by provider and outcome, and by the same digits. The condition of each part is that of its index.
SELECT
    provider,
    MAX(COALESCE(country, to_number)),
    state,
    report,
    reason,
    error_code,
    COUNT(*),
    COALESCE(SUM(segments), 0)::bigint,
    MAX(error_message)
FROM (
    SELECT provider, to_number, country, state, report, reason, error_code, segments, error_message
    FROM dispatches INDEXED BY dispatches_not_plain
    WHERE campaign_number = :number
        AND state <> 'dispatching' AND (state <> 'accepted' OR reason IS NOT NULL OR error_code IS NOT NULL)
    UNION ALL
    SELECT provider, to_number, country, state, report, reason, error_code, segments, error_message
    FROM dispatches INDEXED BY dispatches_open
    WHERE state IN ('dispatching', 'unknown') AND state = 'dispatching' AND campaign_number = :number
) AS others
GROUP BY
    provider,
    state,
    report,
    reason,
    error_code,
    CASE WHEN :by_country::boolean THEN COALESCE(
        country, substr(to_number, 1, CASE substr(to_number, 1, 2) WHEN '+1' THEN 5 WHEN '+7' THEN 7 ELSE 8 END)
    ) END
ORDER BY provider, state, report NULLS FIRST, reason NULLS FIRST, error_code NULLS FIRST, 2

-- calls --
-- Calls by status, outcome, provider and currency, and by the same digits: how many, how many were answered, the time
-- between answer and end, in whole milliseconds and in begun minutes of each call, and what their providers charge, in
-- millionths. Stored times have six decimal places.
SELECT
    status,
    outcome,
    provider,
    MAX(place),
    COUNT(*),
    COUNT(answered_at),
    SUM(lasted)::bigint,
    SUM((lasted + 59999) / 60000)::bigint,
    cost_currency,
    SUM(cost)::bigint,
    COUNT(cost)
FROM (
    SELECT
        status,
        outcome,
        provider,
        answered_at,
        cost,
        cost_currency,
        COALESCE(country, to_number) AS place,
        CASE WHEN :by_country::boolean THEN COALESCE(
            country, substr(to_number, 1, CASE substr(to_number, 1, 2) WHEN '+1' THEN 5 WHEN '+7' THEN 7 ELSE 8 END)
        ) END AS digits,
        CASE WHEN ended_at > answered_at THEN {milliseconds:answered_at|ended_at} ELSE 0 END AS lasted
    FROM calls INDEXED BY calls_of_recipient
    WHERE campaign_number = :number AND campaign_number IS NOT NULL
) AS counted
GROUP BY status, outcome, provider, digits, cost_currency
ORDER BY status, outcome NULLS FIRST, provider, 4, cost_currency NULLS FIRST

-- first_and_last --
-- The ends of an index.
SELECT
    (
        SELECT created_at FROM dispatches INDEXED BY dispatches_of_campaign
        WHERE campaign_number = :number AND campaign_number IS NOT NULL
        ORDER BY created_at LIMIT 1
    ),
    (
        SELECT created_at FROM dispatches INDEXED BY dispatches_of_campaign
        WHERE campaign_number = :number AND campaign_number IS NOT NULL
        ORDER BY created_at DESC LIMIT 1
    )

-- requests_by_step --
-- One range of the index; a step is what the beginning of a stored time tells apart: a day, an hour, ten minutes or one.
SELECT substr(created_at, 1, :length::integer), state, report, COUNT(*)
FROM dispatches INDEXED BY dispatches_of_campaign
WHERE campaign_number = :number
    AND campaign_number IS NOT NULL
    AND created_at >= :since
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3 NULLS FIRST

-- requests_between --
-- One range of the index for each stretch of time.
SELECT (
    SELECT COUNT(*) FROM dispatches INDEXED BY dispatches_of_campaign
    WHERE campaign_number = :number
        AND campaign_number IS NOT NULL
        AND created_at >= {part:0}
        AND created_at < {part:1}
)
FROM {each_row:wanted}
ORDER BY wanted.key

-- replies --
-- Messages of numbers whose last request before them was of this campaign. From the few that came in, never from all
-- contacts.
SELECT received_at, from_number
FROM inbound_messages INDEXED BY inbound_messages_by_time
WHERE workspace_id = :workspace_id
    AND received_at >= :since
    AND received_at < :until
    AND archived_campaign IS NULL
    AND :number = (
        SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
        WHERE to_number = inbound_messages.from_number
            AND dispatches.workspace_id = :workspace_id
            AND created_at <= inbound_messages.received_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.{serial} DESC
        LIMIT 1
    )
ORDER BY received_at

-- opt_outs --
-- The same for those who came onto the register by themselves.
SELECT created_at
FROM unsubscribes INDEXED BY unsubscribes_by_time
WHERE workspace_id = :workspace_id
    AND created_at >= :since
    AND created_at < :until
    AND source IN ('keyword', 'carrier', 'call')
    AND archived_campaign IS NULL
    AND :number = (
        SELECT campaign_number FROM dispatches INDEXED BY dispatches_to_number
        WHERE to_number = unsubscribes.phone
            AND dispatches.workspace_id = :workspace_id
            AND dispatches.created_at <= unsubscribes.created_at
            AND campaign_number IS NOT NULL
            AND state NOT IN ('not_sent', 'withdrawn', 'deferred')
        ORDER BY dispatches.created_at DESC, dispatches.{serial} DESC
        LIMIT 1
    )
ORDER BY created_at
