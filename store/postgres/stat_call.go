package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/rollup"
	"github.com/sluice-queue/sluice/stat"
)

//go:embed sql/stat_call_take.sql
var statCallTakeSQL string

// callsPerRow is how many calls of functions count like one row of a holder: calls are many and small.
const callsPerRow = 20

// statCall is the effect of one function call on jobs of a queue and tenant. Times are in microseconds, one per
// job.
type statCall struct {
	at                    time.Time
	queue, tenant         string
	event                 sluice.Event
	jobs                  int
	waits, runs, allTimes []int64
}

func scanStatCall(row pgx.CollectableRow) (c statCall, err error) {
	err = row.Scan(&c.at, &c.queue, &c.tenant, &c.event, &c.jobs, &c.waits, &c.runs, &c.allTimes)
	return c, err
}

// foldCalls turns the counts of function calls into counts of a holder, in the transaction of fold.
// The result is the part of the limit that this took.
func foldCalls(ctx context.Context, tx pgx.Tx, limit int) (int, error) {
	calls, err := list(ctx, tx, scanStatCall, statCallTakeSQL, limit*callsPerRow)
	if err != nil || len(calls) == 0 {
		return 0, err
	}
	holder := "functions:" + sluice.NewID().String() // later calls of the same bucket make another part
	slots, err := rollup.Split(holder, statsOf(calls))
	if err != nil {
		return 0, err
	}
	for _, slot := range slots {
		if err := addParts(ctx, tx, holder, slot); err != nil {
			return 0, err
		}
	}
	return (len(calls) + callsPerRow - 1) / callsPerRow, nil
}

// statsOf adds up calls by bucket, queue and tenant.
func statsOf(calls []statCall) []stat.Stat {
	byName := make(map[statOf]*stat.Stat)
	for _, c := range calls {
		of := statOf{c.at.UTC().Truncate(stat.Fine), c.queue, ""}
		c.countIn(byName, of)
		if of.tenant = c.tenant; of.tenant != "" {
			c.countIn(byName, of)
		}
	}
	out := make([]stat.Stat, 0, len(byName))
	for _, s := range byName {
		out = append(out, *s)
	}
	return out
}

// statOf identifies a count.
type statOf struct {
	at            time.Time
	queue, tenant string
}

func (c statCall) countIn(stats map[statOf]*stat.Stat, of statOf) {
	s := stats[of]
	if s == nil {
		s = &stat.Stat{Queue: of.queue, Tenant: of.tenant, At: of.at, Every: stat.Fine}
		stats[of] = s
	}
	if len(c.waits)+len(c.runs) == 0 {
		s.Moved(c.event, c.jobs, stat.Unknown, stat.Unknown, stat.Unknown)
		return
	}
	for i := range c.jobs {
		s.Moved(c.event, 1, timeAt(c.waits, i), timeAt(c.runs, i), timeAt(c.allTimes, i))
	}
}

func timeAt(micros []int64, i int) time.Duration {
	if i >= len(micros) {
		return stat.Unknown
	}
	return time.Duration(micros[i]) * time.Microsecond
}
