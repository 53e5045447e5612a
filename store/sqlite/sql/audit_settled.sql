-- Gives the last entry of the audit. Whoever writes is alone, so nothing comes before it any more.
select coalesce(max(seq), 0) from sluice_audit
