-- Reads the server's clock. The statement also reads a row, so that it fails if Sluice's tables do not answer.
select case when exists (select from sluice.queue) then clock_timestamp() else clock_timestamp() end
