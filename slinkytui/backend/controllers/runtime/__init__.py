"""What runs controllers. It knows no resource and no server; what it needs of them it states as a Protocol.

`controller` works through a `queue` of keys; a reconcile answers with an `outcome`. `mapping` says who is woken by a
change. `manager` starts and stops all in order and asks `lease` who leads; `gate` stands before every write. Around the
writes of a pass: `expectations` (what the caches do not show yet), `pool` (how many at once), `breaker` (servers that
are away), `events` (what people are told). `logs` and `stats` are what it tells of itself.
"""
