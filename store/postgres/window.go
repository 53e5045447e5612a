package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/permits.sql
var permitsSQL string

//go:embed sql/permits_look.sql
var permitsLookSQL string

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

// forgetEvery is how often a process deletes starts of a queue that have left every window.
const forgetEvery = 10 * time.Second

// readWindow reads the window of a queue's rate, under the lock of its flow. The function also records when jobs of
// earlier claims began, as the holder reports it or by their state, and queues the changes.
func (g *gate) readWindow(ctx context.Context, tx *pipeline, s *Store, request sluice.ClaimRequest) error {
	if g.settings.Rate.IsZero() {
		return nil
	}
	back := g.bucket.SetBack(g.now)
	g.reading.Ahead -= back
	forward, unheard := s.readingOf(request.Queue).Stepped(g.reading)
	g.reading.Ahead += forward - unheard
	g.wasSet = g.wasSet || unheard > 0
	since := flow.Since(g.settings, g.now).Add(-forward)
	if err := readWindow(ctx, tx, permitsSQL, &g.window, request.Queue, g.permitsFrom, since); err != nil {
		return err
	}
	if back > 0 || forward > 0 {
		g.window.SetBack(back, g.now)
		g.window.SetForward(forward, g.now)
		g.replaceWindow(tx, request.Queue, since)
	}
	s.readings.Store(request.Queue, g.reading)
	changed, started := g.window.Hear(request.Begun, g.settings, g.now)
	for _, p := range g.window.Overdue(g.now) {
		held, err := list(ctx, tx, pgx.RowTo[int], permitHeldSQL, [16]byte(p.Token))
		if err != nil {
			return err
		}
		changed, started = append(changed, p), append(started, g.window.Held(p, held[0], g.settings, g.now, request.Lease/2)...)
	}
	g.keepWindow(tx, request.Queue, changed, started)
	if last, known := s.forgotten.Load(request.Queue); !known || g.now.Sub(last.(time.Time)).Abs() > forgetEvery {
		s.forgotten.Store(request.Queue, g.now)
		tx.queue(startedForgetSQL, nil, request.Queue, g.now.Add(-flow.Kept(g.settings)), pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true})
	}
	return nil
}

// hear only records the begun jobs that a holder reports.
func (g *gate) hear(ctx context.Context, tx *pipeline, s *Store, request sluice.ClaimRequest) error {
	err := errors.Join(g.readWindow(ctx, tx, s, request), g.readShared(ctx, tx, s, request))
	g.takeShared(tx, request, 0)
	if err == nil && g.wasSet {
		g.keep(tx, request.Queue)
	}
	return err
}

// readWindow reads a window. Permits is the statement that reads the permits, with or without their tokens.
func readWindow(ctx context.Context, tx rowsQuerier, permits string, w *flow.Window, queue string, permitsFrom, since time.Time) (err error) {
	if w.Permits, err = list(ctx, tx, scanPermit, permits, queue, nullTime(permitsFrom)); err != nil {
		return err
	}
	w.Started, err = list(ctx, tx, func(row pgx.CollectableRow) (g flow.Started, err error) {
		err = row.Scan(&g.At, &g.Jobs)
		return g, err
	}, startedSQL, queue, since)
	return err
}

func scanPermit(row pgx.CollectableRow) (*flow.Permit, error) {
	var p flow.Permit
	var token [16]byte
	err := row.Scan(&p.ClaimedAt, &token, &p.Jobs, &p.Begun, &p.Gone, &p.LookAt)
	p.Token = token
	return &p, err
}

// replaceWindow stores the window in place of the starts stored since an instant.
func (g *gate) replaceWindow(tx *pipeline, queue string, since time.Time) {
	tx.queue(startedForgetSQL, nil, queue, g.now.Add(-flow.Kept(g.settings)), since)
	g.keepWindow(tx, queue, g.window.Permits, g.window.Started)
	g.bucket, g.wasSet = g.bucket.Filled(g.settings, g.now), true
}

// readingOf returns the last reading of the server's clock by this process, for the flow of a queue.
func (s *Store) readingOf(queue string) flow.Reading {
	last, known := s.readings.Load(queue)
	if !known {
		return flow.Reading{}
	}
	return last.(flow.Reading)
}

// keepWindow queues the changes of the window.
func (g *gate) keepWindow(tx *pipeline, queue string, changed []*flow.Permit, started []flow.Started) {
	for _, p := range changed {
		if p.Open() == 0 {
			tx.queue(permitForgetSQL, nil, queue, p.ClaimedAt, [16]byte(p.Token))
			continue
		}
		tx.queue(permitPutSQL, nil, queue, p.ClaimedAt, [16]byte(p.Token), p.Jobs, p.Begun, p.Gone, p.LookAt)
	}
	for _, at := range started {
		tx.queue(startedAddSQL, nil, queue, at.At, at.Jobs)
	}
}

// takeFromWindow queues the permit for claimed jobs, and notes from when permits are to be read.
func (g *gate) takeFromWindow(tx *pipeline, request sluice.ClaimRequest, jobs int) {
	taken, started := g.window.Take(request, jobs, g.settings, g.now, g.at)
	if taken != nil {
		g.keepWindow(tx, request.Queue, []*flow.Permit{taken}, nil)
	}
	g.keepWindow(tx, request.Queue, nil, started)
	g.permitsFrom = g.at
	for _, p := range g.window.Permits {
		if p.Open() > 0 && p.ClaimedAt.Before(g.permitsFrom) {
			g.permitsFrom = p.ClaimedAt
		}
	}
}
