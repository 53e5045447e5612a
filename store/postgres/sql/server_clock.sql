-- Reads the server's clock at this moment, not at the start of the transaction.
select clock_timestamp()
