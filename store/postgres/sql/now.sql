-- What the server's clock says in this moment. It reads a row, so that it answers only where Sluice's tables do.
select case when exists (select from sluice.queue) then clock_timestamp() else clock_timestamp() end
