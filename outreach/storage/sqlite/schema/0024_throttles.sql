-- Names that say what is meant: a provider throttles an account, a copied database is in quarantine, contacts are postponed.
ALTER TABLE account_holds RENAME TO provider_throttles;
ALTER TABLE lease RENAME COLUMN held_reason TO quarantine_reason;
ALTER TABLE lease RENAME COLUMN held_epoch TO quarantine_epoch;
ALTER TABLE runs RENAME COLUMN held_under TO postponed_under;
UPDATE trail SET rule = 'provider_throttle' WHERE rule = 'provider_hold';
UPDATE trail SET reason = 'provider_throttle' WHERE reason = 'provider_hold';
UPDATE dispatches SET reason = 'provider_throttle' WHERE reason = 'provider_hold';
