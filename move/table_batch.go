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
	died := column{name: "died", kind: kindBool, lite: "died", reads: "exists (select from sluice.batch_change h where h.batch = t.batch and h.kind = 'died')"}
	t := table{batchCounts, []column{
		is("batch", kindID), is("total", kindInt), is("completed", kindInt), is("dead", kindInt), is("cancelled", kindInt), died,
	}, keyed("batch_count", "batch"), keyed("sluice_batch_count", "batch")}
	t.lite.left = []string{"changed"}
	return t
}

const batchCounts = "counts of batches"

// foldBatches adds the changes that upkeep has not added up to the counts of batches. A batch without a row of counts gets one.
// Rows that count nothing stay: upkeep is to look at these batches, here if the move is given up, else in the target.
func foldBatches(ctx context.Context, tx pgx.Tx) error {
	return pgExec(ctx, tx, `
		insert into sluice.batch_count as c (batch, total, completed, dead, cancelled)
		select b.id, coalesce(sum(h.jobs) filter (where h.kind = 'total'), 0), coalesce(sum(h.jobs) filter (where h.kind = 'completed'), 0),
		       coalesce(sum(h.jobs) filter (where h.kind = 'dead'), 0), coalesce(sum(h.jobs) filter (where h.kind = 'cancelled'), 0)
		from sluice.batch b left join sluice.batch_change h on h.batch = b.id
		group by b.id
		on conflict (batch) do update
		set total = c.total + excluded.total, completed = c.completed + excluded.completed, dead = c.dead + excluded.dead, cancelled = c.cancelled + excluded.cancelled`,
		`with gone as (delete from sluice.batch_change returning batch, kind, jobs)
		insert into sluice.batch_change (batch, kind, jobs)
		select batch, case when bool_or(kind = 'died' or kind = 'dead' and jobs > 0) then 'died' else 'total' end, 0 from gone group by batch`)
}

// A move leaves behind which batches have changed since upkeep looked, except by a death. So upkeep is to look at each of which
// something may have become: a job has died in it, it may be complete, or have succeeded since. Upkeep decides as if it had
// seen the change.
const (
	pgWakeBatches = `
		insert into sluice.batch_change (batch, kind, jobs)
		select b.id, 'total', 0
		from sluice.batch b
		join sluice.batch_count c on c.batch = b.id
		where b.died_at is null and c.dead > 0 or b.completed_at is null and b.closed_at is not null
			or b.completed_at is not null and b.succeeded_at is null and c.completed = c.total`
	liteWakeBatches = `
		update sluice_batch_count as c set changed = 1
		from sluice_batch b
		where b.id = c.batch and (b.died_at is null and (c.died or c.dead > 0) or b.completed_at is null and b.closed_at is not null
			or b.completed_at is not null and b.succeeded_at is null and c.completed = c.total)`
)

// noteDeaths stores in which batches a job has died, as PostgreSQL keeps that: among changes. In a row, died is the last value.
func noteDeaths(ctx context.Context, tx pgx.Tx, rows []row) error {
	var died [][16]byte
	for _, r := range rows {
		if last := len(r.values) - 1; r.values[last] == true {
			died = append(died, [16]byte(r.values[0].([]byte)))
		}
	}
	_, err := tx.Exec(ctx, "insert into sluice.batch_change (batch, kind, jobs) select b, 'died', 0 from unnest($1::uuid[]) as b", died)
	return err
}
