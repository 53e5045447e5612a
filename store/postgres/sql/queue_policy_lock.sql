-- Lets one transaction at a time make a new queue, so that each counts those before it. Reading goes on.
lock table sluice.queue_policy in share row exclusive mode
