-- Stores decisions about batches, and makes upkeep evaluate other batches again.
-- $1 uuid[] ids   $2 timestamptz[] complete since   $3 timestamptz[] succeeded since   $4 timestamptz[] the first death
-- $5 uuid[] the other batches   $6 text[] kinds of their changes
with given as (
    select * from rows from (unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[]), generate_series(1, cardinality($1::uuid[]))) as g(id, complete, succeeded, died)
), decided as (
    update sluice.batch b
    set completed_at = g.complete, succeeded_at = g.succeeded, died_at = g.died
    from given g
    where b.id = g.id and b.id = any ($1::uuid[])
)
insert into sluice.batch_change (batch, kind, jobs)
select o.id, o.kind, 0 from unnest($5::uuid[], $6::text[]) as o(id, kind)
