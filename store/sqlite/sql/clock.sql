-- The value of the wall clock when the steady clock of a start of the machine was at 0.
-- ?1 boot
select steady_from from sluice_clock where boot = ?1
