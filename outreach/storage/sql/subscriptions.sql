-- Named subscriptions to events.

-- list --
-- For operators; there are few.
SELECT {subscriptions} FROM subscriptions ORDER BY name
