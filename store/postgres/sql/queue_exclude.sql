-- Keeps jobs from being stored until the transaction ends, and waits for transactions that have stored some. Those that come
-- later wait behind it, so it gives up soon, and is tried again.
lock table sluice.job in share mode
