-- Lets one transaction at a time make a new queue, so that each counts the queues before it. Others can still read.
lock table sluice.queue_policy in share row exclusive mode
