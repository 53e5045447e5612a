package move

import (
	"context"

	"github.com/jackc/pgx/v5"
)

func batchTable() table {
	return table{"batches", []column{
		is("id", kindID), is("name", kindText), is("parent", kindID), is("callbacks", kindText), is("created_at", kindInstant), is("created_by", kindText),
		is("closed_at", kindInstant), is("completed_at", kindInstant), is("succeeded_at", kindInstant), is("died_at", kindInstant), is("paused", kindText),
	}, keyed("batch", "id"), keyed("sluice_batch", "id")}
}

// batchCountTable is the last table: foldBatches completes it when nobody can write the others any more.
func batchCountTable() table {
	t := table{batchCounts, []column{
		is("batch", kindID), is("total", kindInt), is("completed", kindInt), is("dead", kindInt), is("cancelled", kindInt),
	}, keyed("batch_count", "batch"), keyed("sluice_batch_count", "batch")}
	t.lite.left = []string{"died", "changed"}
	return t
}

const batchCounts = "counts of batches"

// foldBatches adds the changes that upkeep has not added up to the counts of batches. A batch without a row of counts gets one.
func foldBatches(ctx context.Context, tx pgx.Tx) error {
	return pgExec(ctx, tx, `
		insert into sluice.batch_count as c (batch, total, completed, dead, cancelled)
		select b.id, coalesce(sum(h.jobs) filter (where h.kind = 'total'), 0), coalesce(sum(h.jobs) filter (where h.kind = 'completed'), 0),
		       coalesce(sum(h.jobs) filter (where h.kind = 'dead'), 0), coalesce(sum(h.jobs) filter (where h.kind = 'cancelled'), 0)
		from sluice.batch b left join sluice.batch_change h on h.batch = b.id
		group by b.id
		on conflict (batch) do update
		set total = c.total + excluded.total, completed = c.completed + excluded.completed, dead = c.dead + excluded.dead, cancelled = c.cancelled + excluded.cancelled`,
		"delete from sluice.batch_change", pgWakeBatches)
}

// A move leaves behind which batches have changed since upkeep looked. So upkeep is to look at each of which something may
// have become: a job has died in it or in one directly in it, it may be complete, or have succeeded since. Upkeep
// decides as if it had seen the change.
const (
	pgWakeBatches = `
		insert into sluice.batch_change (batch, kind, jobs)
		select b.id, case when d.died then 'died' else 'total' end, 0
		from sluice.batch b
		join sluice.batch_count c on c.batch = b.id
		cross join lateral (select b.died_at is null
			and (c.dead > 0 or exists (select from sluice.batch i where i.parent = b.id and i.died_at is not null)) as died) d
		where d.died or b.completed_at is null and b.closed_at is not null
			or b.completed_at is not null and b.succeeded_at is null and c.completed = c.total`
	liteWakeBatches = `
		with seen as materialized (
			select b.id, b.closed_at, b.completed_at, b.succeeded_at, c.completed = c.total as whole, b.died_at is null
				and (c.dead > 0 or exists (select 1 from sluice_batch i where i.parent = b.id and i.died_at is not null)) as died
			from sluice_batch b join sluice_batch_count c on c.batch = b.id
		)
		update sluice_batch_count as c set changed = 1, died = s.died
		from seen s
		where s.id = c.batch and (s.died or s.completed_at is null and s.closed_at is not null
			or s.completed_at is not null and s.succeeded_at is null and s.whole)`
)
