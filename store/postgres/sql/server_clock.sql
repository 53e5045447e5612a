-- What the server's clock says in this moment, not when the transaction began.
select clock_timestamp()
