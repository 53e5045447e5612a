-- Reads every page and compares each index with its table, and lists the first twenty faults; one row says ok.
pragma integrity_check(20)
