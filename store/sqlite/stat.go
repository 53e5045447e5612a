package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"time"

	"github.com/sluice-queue/sluice/internal/rollup"
	"github.com/sluice-queue/sluice/stat"
)

var _ stat.Store = (*Store)(nil)

//go:embed sql/stat_sent.sql
var statSentSQL string

//go:embed sql/stat_add.sql
var statAddSQL string

//go:embed sql/stat_due.sql
var statDueSQL string

//go:embed sql/stat_take.sql
var statTakeSQL string

//go:embed sql/stat_stored.sql
var statStoredSQL string

//go:embed sql/stat_put.sql
var statPutSQL string

//go:embed sql/stat_old.sql
var statOldSQL string

//go:embed sql/stat_forget.sql
var statForgetSQL string

//go:embed sql/stat_forget_holders.sql
var statForgetHoldersSQL string

//go:embed sql/stats.sql
var statsSQL string

// AddStats stores the counts of a holder, each bucket in its own write.
func (s *Store) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	slots, err := rollup.Split(holder, stats)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if !rollup.Taken(slot.At, time.UnixMicro(now())) {
			continue
		}
		if err := s.addBucket(ctx, holder, slot); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) addBucket(ctx context.Context, holder string, slot rollup.Bucket) error {
	bodies := make([]string, len(slot.Parts))
	for i, part := range slot.Parts {
		var err error
		if bodies[i], err = part.Body(); err != nil {
			return err
		}
	}
	return s.write(ctx, "add statistics", func(tx runner, _ bool) error {
		sent, err := list(tx, scanOne[string], statSentSQL, holder, slot.At.UnixMicro())
		if err != nil || len(sent) == 0 {
			return err
		}
		for i, part := range slot.Parts {
			if _, err := tx.exec(statAddSQL, slot.At.UnixMicro(), part.Queue, holder, bodies[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Stats lists buckets.
func (s *Store) Stats(ctx context.Context, filter stat.Filter) ([]stat.Stat, error) {
	var out []stat.Stat
	from, partsTo := rollup.Bounds(filter)
	limit := filter.Limit // each row is a bucket, and rows after the last wanted one are not requested
	if filter.Tenant != "" {
		limit = -1
	}
	queues, err := jsonUnlessNone(filter.Queues)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, "look at statistics", func(tx runner) error {
		found, err := list(tx, scanStat, statsSQL, int(filter.Every.Seconds()), from.UnixMicro(), filter.To.UnixMicro(), queues,
			filter.Tenant, filter.Tenants, limit, partsTo.UnixMicro(), filter.Levels)
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
func scanStat(row *sql.Rows) (s rollup.Stored, err error) {
	var every *int
	var at int64
	var tenants *string
	columns := []any{&every, &at, &s.Queue}
	for _, figure := range s.Counts.Values() {
		columns = append(columns, figure)
	}
	err = row.Scan(append(columns, &s.Wait, &s.Run, &s.Total, &s.Level, &tenants)...)
	s.At, s.Every, s.Tenants = time.UnixMicro(at).UTC(), time.Duration(orZero(every))*time.Second, orZero(tenants)
	return s, err
}

// duePart is a part of a bucket, and the holder that added it.
type duePart struct {
	rollup.Part
	holder string
}

// CountStartFailed counts a run that an engine did not start.
func (s *Store) CountStartFailed(queue, tenant string) { s.tally.StartFailed(queue, tenant) }

// FoldStats merges the counts that holders added, and deletes old buckets. Reads happen beside the
// writer. Each write merges one minute of one queue.
func (s *Store) FoldStats(ctx context.Context, limit int) (int, error) {
	var due []duePart
	err := s.read(ctx, "fold statistics", func(tx runner) (err error) {
		due, err = list(tx, scanDuePart, statDueSQL, rollup.FoldUntil(time.UnixMicro(now())).UnixMicro(), limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, group := range minutesOf(due) {
		if err := s.foldGroup(ctx, group); err != nil {
			return 0, err
		}
	}
	forgotten, err := s.forgetStats(ctx, limit)
	return len(due) + forgotten, err
}

func scanDuePart(row *sql.Rows) (t duePart, err error) {
	var at int64
	var queue, body string
	if err := row.Scan(&at, &queue, &t.holder, &body); err != nil {
		return t, err
	}
	t.Part, err = rollup.PartOf(time.UnixMicro(at), queue, body)
	return t, err
}

// minutesOf groups parts by minute and queue.
func minutesOf(due []duePart) map[rollup.Key][]duePart {
	groups := make(map[rollup.Key][]duePart)
	for _, t := range due {
		key := rollup.Key{Every: stat.Minute, At: t.At.Truncate(stat.Minute), Queue: t.Queue}
		groups[key] = append(groups[key], t)
	}
	return groups
}

// errFolded means that another process has merged the same parts.
var errFolded = errors.New("statistics were folded by another process")

func (s *Store) foldGroup(ctx context.Context, group []duePart) error {
	parts := make([]rollup.Part, len(group))
	for i, t := range group {
		parts[i] = t.Part
	}
	err := s.write(ctx, "fold statistics", func(tx runner, _ bool) error {
		for _, t := range group {
			taken, err := list(tx, scanOne[int], statTakeSQL, t.At.UnixMicro(), t.Queue, t.holder)
			if err == nil && len(taken) == 0 {
				err = errFolded
			}
			if err != nil {
				return err
			}
		}
		return putParts(tx, parts)
	})
	if errors.Is(err, errFolded) {
		return nil
	}
	return err
}

func putParts(tx runner, parts []rollup.Part) error {
	rows := rollup.Fold(parts)
	var stored []rollup.Stored
	for _, r := range rows {
		found, err := list(tx, scanStat, statStoredSQL, int(r.Every.Seconds()), r.At.UnixMicro(), r.Queue)
		if err != nil {
			return err
		}
		stored = append(stored, found...)
	}
	put, err := rollup.Merged(rows, stored)
	if err != nil {
		return err
	}
	for _, r := range put {
		columns := []any{int(r.Every.Seconds()), r.At.UnixMicro(), r.Queue}
		for _, figure := range r.Counts.Values() {
			columns = append(columns, *figure)
		}
		if _, err := tx.exec(statPutSQL, append(columns, r.Wait, r.Run, r.Total, r.Level, r.Tenants)...); err != nil {
			return err
		}
	}
	return nil
}

// forgetStats deletes old buckets. A read beside the writer comes first, to find out whether there
// are any.
func (s *Store) forgetStats(ctx context.Context, limit int) (int, error) {
	at := time.UnixMicro(now())
	holders := at.Add(-stat.FineKept).UnixMicro()
	forgotten := 0
	for _, slot := range stat.Slots() {
		every, before := int(slot.Every.Seconds()), at.Add(-slot.Kept).UnixMicro()
		var old []bool
		err := s.read(ctx, "fold statistics", func(tx runner) (err error) {
			old, err = list(tx, scanOne[bool], statOldSQL, every, before, holders)
			return err
		})
		if err != nil {
			return forgotten, err
		}
		if !old[0] {
			continue
		}
		var gone int64
		err = s.write(ctx, "fold statistics", func(tx runner, _ bool) error {
			result, err := tx.exec(statForgetSQL, every, before, limit-forgotten)
			if err != nil {
				return err
			}
			if gone, err = result.RowsAffected(); err != nil {
				return err
			}
			_, err = tx.exec(statForgetHoldersSQL, holders)
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten += int(gone)
	}
	return forgotten, nil
}
