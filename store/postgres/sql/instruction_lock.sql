-- Lets one instruction after the other be stored, so that each is newer than all before. Heartbeats go on reading them.
lock table sluice.instruction in share row exclusive mode
