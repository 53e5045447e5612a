-- Returns the wall clock of the moment at which the steady clock of this boot was at 0.
-- ?1 boot
select steady_from from sluice_clock where boot = ?1
