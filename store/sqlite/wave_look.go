package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"math"
	"time"

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
	at := now()
	until := int64(math.MaxInt64)
	if filter.Ahead > 0 {
		until = at + filter.Ahead.Microseconds()
	}
	var out forecast.Counts
	err := s.read(ctx, "look at waves", func(tx runner) error {
		found, err := list(tx, scanCounted, wavesSQL, filter.Queue, until, filter.Tenants)
		if err != nil {
			return err
		}
		if out, err = wavesOf(found); err != nil || len(out.Queues) == 0 {
			return err
		}
		return addRuns(tx, out.Queues)
	})
	out.Now = time.UnixMicro(at).UTC()
	return out, err
}

// counted is a row of a count, and the count that it belongs to.
type counted struct {
	of  forecast.QueueCounts
	row wave.Row
}

func scanCounted(rows *sql.Rows) (counted, error) {
	var c counted
	var countedAt, took int64
	var part, tenants *string
	var at *int64
	var jobs *int
	err := rows.Scan(&c.of.Queue, &countedAt, &took, &part, &at, &jobs, &tenants)
	c.of.CountedAt, c.of.Took = timeOf(&countedAt), time.Duration(took)*time.Microsecond
	c.row = wave.Row{Part: orZero(part), At: timeOf(at), Jobs: orZero(jobs), Tenants: orZero(tenants)}
	return c, err
}

// wavesOf collects rows, which are sorted by queue.
func wavesOf(found []counted) (out forecast.Counts, err error) {
	for _, c := range found {
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
func addRuns(tx runner, queues []forecast.QueueCounts) error {
	found, err := list(tx, func(rows *sql.Rows) (forecast.QueueCounts, error) {
		var q forecast.QueueCounts
		var micros float64
		err := rows.Scan(&q.Queue, &micros, &q.Runs)
		q.RunTime = time.Duration(micros * float64(time.Microsecond))
		return q, err
	}, waveRunsSQL, newestDone)
	for _, f := range found {
		for i := range queues {
			if queues[i].Queue == f.Queue {
				queues[i].RunTime, queues[i].Runs = f.RunTime, f.Runs
			}
		}
	}
	return err
}
