-- Lets one transaction at a time store an instruction, so that each instruction is newer than all earlier ones.
-- Heartbeats can still read.
lock table sluice.instruction in share row exclusive mode
