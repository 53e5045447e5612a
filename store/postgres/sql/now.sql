-- Reads the server's clock. The statement reads a row too, so that it fails where Sluice's tables do not answer.
select case when exists (select from sluice.queue) then clock_timestamp() else clock_timestamp() end
