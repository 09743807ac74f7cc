-- append --
-- Numbered by the database: clocks may step back.
INSERT INTO audit ({audit})
SELECT {audit} FROM {audit_rows} WITH ORDINALITY AS given ({audit}, place) ORDER BY given.place
