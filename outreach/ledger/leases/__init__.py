"""Leases, workers, their claims, and steps of the clock.

State that a process keeps in memory, and how it stays true beside other workers:

| In one process | Beside others |
|---|---|
| pace, turns and caller IDs of a campaign, rate of a number | a claim: one worker at a time; slots are rows |
| calls in flight of a campaign | counted in the ledger, in the transaction of the intent |
| permits for intents and requests | each worker's row has its share until its next heartbeat |
| provider throttles, error budget, stops | rows; every commit and every last check reads the stops of its workspace |
| cached rows, pages of lists | dropped when another process has committed |
| request limit | blocks that the database grants |
| API keys | cached for half a second |
| idempotency keys | a row with an owner and a time |
| events, named subscriptions | numbered in the order of commits; a subscription has a holder with a lease |
| clock steps, look-ups, sweeps, the note beside a SQLite file | the leader does them |

A worker that has been alone since it began claims nothing ahead: its first commit in a campaign writes the claim.
"""
