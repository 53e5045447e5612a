-- Keeps other transactions from storing jobs until this transaction ends, and waits for transactions that have stored
-- some. Later transactions wait behind this lock. So the lock attempt gives up soon, and the caller tries again.
lock table sluice.job in share mode
