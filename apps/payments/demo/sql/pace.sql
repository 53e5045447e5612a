-- How fast jobs of a queue were claimed, by its audit and against its settings. In no stretch of time, however short or
-- long, may there be more claims than the burst and what the rate gives meanwhile; the fullest stretch is what is told.
-- $1 queue
with claim as (
    select seconds, row_number() over (order by seconds) as n
    from (
        select (at - min(at) over ()) / 1e6 as seconds
        from sluice_audit
        where object = 'job' and name = $1 and event = 'claim'
    )
), ahead as (
    select seconds, n, n - rate * seconds as claims, rate, burst
    from claim, (select rate, burst from sluice_queue where name = $1)
), fullest as (
    select *, claims - min(claims) over (order by n rows between unbounded preceding and current row) + 1 as used
    from ahead
)
select count(*), coalesce(max(seconds), 0), coalesce(max(used), 0), coalesce(max(burst), 0), coalesce(max(rate), 0)
from fullest
