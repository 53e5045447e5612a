package sqlite

import (
	"database/sql"
	_ "embed"
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/permits.sql
var permitsSQL string

//go:embed sql/permit_held.sql
var permitHeldSQL string

//go:embed sql/permit_put.sql
var permitPutSQL string

//go:embed sql/permit_forget.sql
var permitForgetSQL string

//go:embed sql/started.sql
var startedSQL string

//go:embed sql/started_add.sql
var startedAddSQL string

//go:embed sql/started_forget.sql
var startedForgetSQL string

// readWindow reads the window of a queue's rate, by the steady clock, which setting the wall clock
// does not change. The function also records when jobs of earlier claims began, as the holder
// reports it or by their state. Changes are stored.
func (g *gate) readWindow(tx runner, request sluice.ClaimRequest) error {
	if g.settings.Rate.IsZero() {
		return nil
	}
	now := time.UnixMicro(g.steady)
	if err := readWindow(tx, &g.window, request.Queue, flow.Since(g.settings, now)); err != nil {
		return err
	}
	changed, started := g.window.Hear(request.Begun, g.settings, now)
	for _, p := range g.window.Overdue(now) {
		held, err := list(tx, scanOne[int], permitHeldSQL, p.Token[:])
		if err != nil {
			return err
		}
		changed, started = append(changed, p), append(started, g.window.Held(p, held[0], g.settings, now, request.Lease/2)...)
	}
	if len(changed) > 0 {
		if _, err := tx.exec(startedForgetSQL, request.Queue, now.Add(-flow.Kept(g.settings)).UnixMicro(), int64(math.MaxInt64)); err != nil {
			return err
		}
	}
	return keepWindow(tx, request.Queue, changed, started)
}

func readWindow(tx runner, w *flow.Window, queue string, since time.Time) (err error) {
	w.Permits, err = list(tx, func(rows *sql.Rows) (*flow.Permit, error) {
		var p flow.Permit
		var token []byte
		var claimedAt, lookAt int64
		err := rows.Scan(&claimedAt, &token, &p.Jobs, &p.Begun, &p.Gone, &lookAt)
		copy(p.Token[:], token)
		p.ClaimedAt, p.LookAt = timeOf(&claimedAt), timeOf(&lookAt)
		return &p, err
	}, permitsSQL, queue)
	if err != nil {
		return err
	}
	w.Started, err = list(tx, func(rows *sql.Rows) (g flow.Started, err error) {
		var at int64
		err = rows.Scan(&at, &g.Jobs)
		g.At = timeOf(&at)
		return g, err
	}, startedSQL, queue, since.UnixMicro())
	return err
}

// keepWindow stores the changes of the window.
func keepWindow(tx runner, queue string, changed []*flow.Permit, started []flow.Started) error {
	for _, p := range changed {
		var err error
		if p.Open() == 0 {
			_, err = tx.exec(permitForgetSQL, queue, p.ClaimedAt.UnixMicro(), p.Token[:])
		} else {
			_, err = tx.exec(permitPutSQL, queue, p.ClaimedAt.UnixMicro(), p.Token[:], p.Jobs, p.Begun, p.Gone, p.LookAt.UnixMicro())
		}
		if err != nil {
			return err
		}
	}
	for _, g := range started {
		if _, err := tx.exec(startedAddSQL, queue, g.At.UnixMicro(), g.Jobs); err != nil {
			return err
		}
	}
	return nil
}

// fill fills the bucket of a rate. If the clock was set back, filling starts again from now: the change is stored at once, because
// a claim without jobs stores nothing, and the next would find the old instant again.
func (g *gate) fill(tx runner, queue string, now time.Time) error {
	back := g.bucket.SetBack(now)
	g.bucket = g.bucket.Filled(g.settings, now)
	if back == 0 || g.settings.Rate.IsZero() {
		return nil
	}
	_, err := tx.exec(flowTakeSQL, queue, g.bucket.Tokens, g.bucket.FilledAt.UnixMicro())
	return err
}

// takeRate counts claimed jobs against the rate.
func (g *gate) takeRate(tx runner, request sluice.ClaimRequest, jobs int) error {
	if g.settings.Rate.IsZero() {
		return nil
	}
	left := g.bucket.Take(jobs)
	if _, err := tx.exec(flowTakeSQL, request.Queue, left.Tokens, left.FilledAt.UnixMicro()); err != nil {
		return err
	}
	steady := time.UnixMicro(g.steady)
	taken, started := g.window.Take(request, jobs, g.settings, steady, steady)
	return keepWindow(tx, request.Queue, permitsOf(taken), started)
}

// permitsOf lists a permit, if there is one.
func permitsOf(p *flow.Permit) []*flow.Permit {
	if p == nil {
		return nil
	}
	return []*flow.Permit{p}
}
