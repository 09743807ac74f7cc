-- Who is held back until somebody has decided: few in a register of millions.
CREATE INDEX unsubscribes_held ON unsubscribes (created_at, workspace_id, phone) WHERE scope = 'held';
