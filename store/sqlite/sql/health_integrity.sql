-- Reads every page, compares each index with its table, and lists the first 20 faults. Without a fault, the row is
-- `ok`.
pragma integrity_check(20)
