-- What the wall clock said when the steady clock was at 0, of a start of the machine.
-- ?1 boot
select steady_from from sluice_clock where boot = ?1
