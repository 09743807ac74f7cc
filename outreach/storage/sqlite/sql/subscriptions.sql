-- Named subscriptions to events.

-- list --
-- For the operator; there are few.
SELECT {subscriptions} FROM subscriptions ORDER BY name
