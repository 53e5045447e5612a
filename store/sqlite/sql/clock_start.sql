-- Begins the steady clock of a start of the machine, unless another process has.
-- ?1 boot   ?2 wall clock when the steady clock was at 0
insert into sluice_clock (boot, steady_from) values (?1, ?2) on conflict (boot) do nothing
