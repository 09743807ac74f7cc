-- Jobs for units of work, beside Procrastinate's own tables. A unit has at most one job that waits and one that runs;
-- both have the unit's key as their lock.

CREATE TABLE applied (name text PRIMARY KEY);

CREATE TYPE unit_of_work AS (
    kind text,
    workspace_id text,
    unit_id text,
    due timestamptz,  -- null: nothing is left to do
    queue text  -- null: that of the worker that drives it, or of all
);

CREATE FUNCTION key_of(unit unit_of_work) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT unit.kind || ':' || unit.workspace_id || ':' || unit.unit_id
$$;

-- Any other worker would find that it may not drive the unit, and hand the job on.
CREATE FUNCTION queue_of(unit unit_of_work) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        unit.queue,
        (
            SELECT 'outreach-' || claims.epoch FROM outreach.claims
            WHERE claims.workspace_id = unit.workspace_id
                AND claims.subject = CASE unit.kind WHEN 'campaign' THEN unit.unit_id ELSE 'singles' END
                AND claims.held = 1
        ),
        'outreach'
    )
$$;

-- Have each unit's waiting job come when the unit is due. Where `exactly` is false a job that comes sooner stays.
CREATE FUNCTION defer_units(units unit_of_work[], exactly boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Two transactions must not both miss the other's job; the number of locks is bounded, whatever the number of units.
    PERFORM pg_advisory_xact_lock(1869968498, bucket) FROM (
        SELECT DISTINCT hashtext(key_of(unit)) & 255 AS bucket FROM unnest(units) AS unit ORDER BY bucket
    ) AS buckets;
    PERFORM procrastinate_cancel_job_v1(jobs.id, false, true)
    FROM unnest(units) AS unit
    JOIN procrastinate_jobs AS jobs ON jobs.queueing_lock = key_of(unit) AND jobs.status = 'todo'
    WHERE unit.due IS NULL
        OR jobs.scheduled_at > unit.due
        OR (exactly AND jobs.scheduled_at <> unit.due)
        OR jobs.queue_name <> queue_of(unit);
    PERFORM procrastinate_defer_jobs_v1(array_agg(
        ROW(
            queue_of(unit),
            'outreach.slice',
            0,
            key_of(unit),
            key_of(unit),
            jsonb_build_object('kind', unit.kind, 'workspace_id', unit.workspace_id, 'unit_id', unit.unit_id),
            unit.due
        )::procrastinate_job_to_defer_v1
    ))
    FROM unnest(units) AS unit
    WHERE unit.due IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM procrastinate_jobs AS jobs WHERE jobs.queueing_lock = key_of(unit) AND jobs.status = 'todo'
        )
    HAVING count(*) > 0;
END
$$;

-- The transaction that changes when a unit is due defers its job: neither is there without the other.
CREATE FUNCTION defer_changed_work() RETURNS trigger LANGUAGE plpgsql SET search_path = outreach_jobs, pg_temp AS $$
BEGIN
    PERFORM defer_units(
        array_agg(ROW(kind, workspace_id, unit_id, due_at::timestamptz, NULL)::unit_of_work), true
    ) FROM changed HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER new_work_is_deferred AFTER INSERT ON outreach.work REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION defer_changed_work();

CREATE TRIGGER changed_work_is_deferred AFTER UPDATE ON outreach.work REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION defer_changed_work();

-- Which of these units have a job that waits or runs.
CREATE FUNCTION keys_with_jobs(keys text[]) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT queueing_lock FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = ANY (keys)
    UNION
    SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND lock = ANY (keys)
$$;

-- Give jobs that wait for a worker whose lease has ended to all workers.
CREATE FUNCTION free_orphans() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE procrastinate_jobs SET queue_name = 'outreach'
    WHERE status = 'todo'
        AND queue_name LIKE 'outreach-%'
        AND NOT EXISTS (SELECT FROM outreach.workers WHERE 'outreach-' || workers.epoch = queue_name);
    IF FOUND THEN
        PERFORM pg_notify('procrastinate_queue_v1#outreach', '{"type": "job_inserted", "job_id": 0}');
    END IF;
END
$$;

SELECT defer_units(array_agg(ROW(kind, workspace_id, unit_id, due_at::timestamptz, NULL)::unit_of_work), true)
FROM outreach.work WHERE due_at IS NOT NULL HAVING count(*) > 0;
