package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/internal/rollup"
	"github.com/sluice-queue/sluice/stat"
)

var _ stat.Store = (*Store)(nil)

//go:embed sql/stat_sent.sql
var statSentSQL string

//go:embed sql/stat_add.sql
var statAddSQL string

//go:embed sql/stat_fold.sql
var statFoldSQL string

//go:embed sql/stat_take.sql
var statTakeSQL string

//go:embed sql/stat_stored.sql
var statStoredSQL string

//go:embed sql/stat_put.sql
var statPutSQL string

//go:embed sql/stat_forget.sql
var statForgetSQL string

//go:embed sql/stat_forget_holders.sql
var statForgetHoldersSQL string

//go:embed sql/stats.sql
var statsSQL string

// AddStats stores the counts of a holder, each bucket in its own transaction.
func (s *Store) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	slots, err := rollup.Split(holder, stats)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if err := s.addBucket(ctx, holder, slot); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) addBucket(ctx context.Context, holder string, slot rollup.Bucket) error {
	return s.call(ctx, "add statistics", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			sent, err := list(ctx, tx, pgx.RowTo[string], statSentSQL, holder, slot.At, stat.FineKept, rollup.Ahead)
			if err != nil || len(sent) == 0 {
				return err
			}
			return addParts(ctx, tx, holder, slot)
		})
	})
}

// addParts stores the counts of a holder in one bucket.
func addParts(ctx context.Context, tx pgx.Tx, holder string, slot rollup.Bucket) error {
	var queues, bodies []string
	for _, part := range slot.Parts {
		body, err := part.Body()
		if err != nil {
			return err
		}
		queues, bodies = append(queues, part.Queue), append(bodies, body)
	}
	return exec(ctx, tx, statAddSQL, slot.At, holder, queues, bodies)
}

// Stats lists buckets.
func (s *Store) Stats(ctx context.Context, filter stat.Filter) ([]stat.Stat, error) {
	var out []stat.Stat
	from, partsTo := rollup.Bounds(filter)
	var limit *int
	if filter.Tenant == "" {
		limit = &filter.Limit // each row is a bucket, and rows after the last wanted one are not requested
	}
	err := s.call(ctx, "look at statistics", func(ctx context.Context, _ bool) error {
		found, err := list(ctx, s.pool, scanStat, statsSQL, int(filter.Every.Seconds()), from, filter.To, unlessNone(filter.Queues), filter.Tenant,
			filter.Tenants, limit, partsTo, filter.Levels)
		if err != nil {
			return err
		}
		rows := make(rollup.Rows)
		for _, f := range found {
			if err := rows.AddStored(f, filter); err != nil {
				return err
			}
		}
		out = rows.List(filter)
		return nil
	})
	return out, err
}

// scanStat reads a bucket, or counts that are not merged yet.
func scanStat(row pgx.CollectableRow) (s rollup.Stored, err error) {
	var every *int
	var tenants *string
	columns := []any{&every, &s.At, &s.Queue}
	for _, figure := range s.Counts.Values() {
		columns = append(columns, figure)
	}
	err = row.Scan(append(columns, &s.Wait, &s.Run, &s.Total, &s.Level, &tenants)...)
	s.At, s.Every, s.Tenants = s.At.UTC(), time.Duration(orZero(every))*time.Second, orZero(tenants)
	return s, err
}

// CountStartFailed counts a run that an engine did not start.
func (s *Store) CountStartFailed(queue, tenant string) { s.tally.StartFailed(queue, tenant) }

// FoldStats merges the counts that holders added, and deletes old buckets.
func (s *Store) FoldStats(ctx context.Context, limit int) (int, error) {
	done := 0
	err := s.call(ctx, "fold statistics", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			if done, err = fold(ctx, tx, limit); err != nil {
				return err
			}
			forgotten, err := forgetStats(ctx, tx, limit)
			done += forgotten
			return err
		})
	})
	return done, err
}

// fold merges the counts that holders added for past minutes. A lock keeps other processes from doing the same.
func fold(ctx context.Context, tx pgx.Tx, limit int) (int, error) {
	now, err := list(ctx, tx, pgx.RowTo[time.Time], statFoldSQL)
	if err != nil {
		return 0, err
	}
	calls, err := foldCalls(ctx, tx, limit)
	if err != nil {
		return 0, err
	}
	parts, err := list(ctx, tx, scanPart, statTakeSQL, rollup.FoldUntil(now[0]), limit)
	if err != nil || len(parts) == 0 {
		return calls, err
	}
	rows := rollup.Fold(parts)
	var kinds []int
	var instants []time.Time
	var queues []string
	for _, r := range rows {
		kinds, instants, queues = append(kinds, int(r.Every.Seconds())), append(instants, r.At), append(queues, r.Queue)
	}
	stored, err := list(ctx, tx, scanStat, statStoredSQL, kinds, instants, queues)
	if err != nil {
		return 0, err
	}
	put, err := rollup.Merged(rows, stored)
	if err != nil {
		return 0, err
	}
	for _, r := range put {
		if err := exec(ctx, tx, statPutSQL, statColumns(r)...); err != nil {
			return 0, err
		}
	}
	return max(calls, len(parts)), nil
}

func scanPart(row pgx.CollectableRow) (rollup.Part, error) {
	var at time.Time
	var queue, body string
	if err := row.Scan(&at, &queue, &body); err != nil {
		return rollup.Part{}, err
	}
	return rollup.PartOf(at, queue, body)
}

func statColumns(r rollup.Stored) []any {
	columns := []any{int(r.Every.Seconds()), r.At, r.Queue}
	for _, figure := range r.Counts.Values() {
		columns = append(columns, *figure)
	}
	return append(columns, r.Wait, r.Run, r.Total, r.Level, r.Tenants)
}

func forgetStats(ctx context.Context, tx pgx.Tx, limit int) (int, error) {
	forgotten := 0
	for _, slot := range stat.Slots() {
		gone, err := list(ctx, tx, pgx.RowTo[int], statForgetSQL, int(slot.Every.Seconds()), slot.Kept, limit-forgotten)
		if err != nil {
			return 0, err
		}
		forgotten += gone[0]
	}
	return forgotten, exec(ctx, tx, statForgetHoldersSQL, stat.FineKept)
}
