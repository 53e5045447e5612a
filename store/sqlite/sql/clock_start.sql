-- Stores the start of this boot's steady clock, unless another process has stored it.
-- ?1 boot   ?2 the wall clock at which the steady clock was at 0
insert into sluice_clock (boot, steady_from) values (?1, ?2) on conflict (boot) do nothing
