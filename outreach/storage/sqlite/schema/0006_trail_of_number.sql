-- What the trail tells of a number: that it came onto the register and left it, and that somebody wrote back.
CREATE INDEX trail_of_number ON trail (workspace_id, phone) WHERE phone IS NOT NULL;
