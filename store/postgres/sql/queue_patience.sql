-- Sets how long a transaction waits for a lock before it gives up and lets others through.
set local lock_timeout = '500ms'
