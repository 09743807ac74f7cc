-- append --
-- Numbered by the database: clocks may step back.
INSERT INTO audit ({audit}) VALUES ({audit_places})
