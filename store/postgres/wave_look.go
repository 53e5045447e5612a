package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/internal/wave"
)

//go:embed sql/waves.sql
var wavesSQL string

//go:embed sql/wave_runs.sql
var waveRunsSQL string

// newestDone is how many finished jobs Waves reads to estimate the mean run time.
const newestDone = 1000

// Waves returns the last count.
func (s *Store) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	ahead := pgtype.Interval{Microseconds: filter.Ahead.Microseconds(), Valid: filter.Ahead > 0}
	var out forecast.Counts
	err := s.call(ctx, "look at waves", func(ctx context.Context, _ bool) error {
		found, err := list(ctx, s.pool, scanCounted, wavesSQL, filter.Queue, ahead, filter.Tenants)
		if err != nil {
			return err
		}
		if out, err = wavesOf(found); err != nil || len(out.Queues) == 0 {
			return err
		}
		return s.addRuns(ctx, out.Queues)
	})
	return out, err
}

// counted is a row of a count, and the count that it belongs to.
type counted struct {
	now time.Time
	of  forecast.QueueCounts
	row wave.Row
}

func scanCounted(row pgx.CollectableRow) (counted, error) {
	var c counted
	var queue, part, tenants *string
	var countedAt, at pgtype.Timestamptz
	var took *float64
	var jobs *int
	err := row.Scan(&c.now, &queue, &countedAt, &took, &part, &at, &jobs, &tenants)
	c.now = c.now.UTC()
	c.of = forecast.QueueCounts{Queue: orZero(queue), CountedAt: timeOf(countedAt), Took: time.Duration(orZero(took) * float64(time.Millisecond))}
	c.row = wave.Row{Part: orZero(part), At: timeOf(at), Jobs: orZero(jobs), Tenants: orZero(tenants)}
	return c, err
}

// wavesOf collects rows, which are sorted by queue.
func wavesOf(found []counted) (out forecast.Counts, err error) {
	for _, c := range found {
		out.Now = c.now
		if c.of.CountedAt.IsZero() {
			continue
		}
		if last := len(out.Queues) - 1; last < 0 || out.Queues[last].Queue != c.of.Queue {
			out.Queues = append(out.Queues, c.of)
		}
		if err := c.row.Read(&out.Queues[len(out.Queues)-1]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// addRuns adds the mean run times of jobs.
func (s *Store) addRuns(ctx context.Context, queues []forecast.QueueCounts) error {
	rows, err := query(ctx, s.pool, waveRunsSQL, newestDone)
	if err != nil {
		return err
	}
	var queue string
	var seconds float64
	var runs int
	_, err = pgx.ForEachRow(rows, []any{&queue, &seconds, &runs}, func() error {
		for i := range queues {
			if queues[i].Queue == queue {
				queues[i].RunTime, queues[i].Runs = time.Duration(seconds*float64(time.Second)), runs
			}
		}
		return nil
	})
	return err
}
