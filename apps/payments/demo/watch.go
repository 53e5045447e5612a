package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/apps/payments/payment"
)

//go:embed sql/standing.sql
var standingSQL string

// standing is how far the wave has come: payments by status, and jobs by state; other ones should not be.
type standing struct {
	scheduled, accepted, processing               int
	queued, claimed, dispatched, completed, other int
}

// watch tells once a second how far the wave has come, until all payments are done. When half of them were started, the
// server fails.
func (d *demo) watch(ctx context.Context, ended chan error) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	outage := make(chan error, 1) // gets how it ended
	failed, back := false, d.Outage == 0
	for {
		now, err := d.look(ctx)
		if err != nil {
			return err
		}
		if !failed && !back && 2*(now.dispatched+now.completed) >= d.Payments {
			failed = true
			go func() { outage <- d.fail(ctx) }()
		}
		if back && now.completed == d.Payments {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			ended <- nil // it is told here
			return errors.Join(errors.New("the service ended"), err)
		case err := <-outage:
			if err != nil {
				return err
			}
			back = true
		case <-ticker.C:
		}
	}
}

// fail kills the server, and starts it again on its file after a while.
func (d *demo) fail(ctx context.Context) error {
	d.tell("*** the Temporal server is killed, for %s ***", d.Outage)
	if err := d.server.Halt(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(d.Outage):
	}
	if err := d.server.Resume(ctx); err != nil {
		return err
	}
	d.tell("*** the Temporal server is back, on its file ***")
	return nil
}

// look counts payments and jobs, and tells.
func (d *demo) look(ctx context.Context) (standing, error) {
	var s standing
	err := d.service.Books.DB().QueryRowContext(ctx, standingSQL, payment.Queue).Scan(
		&s.scheduled, &s.accepted, &s.processing, &s.queued, &s.claimed, &s.dispatched, &s.completed, &s.other)
	if err != nil {
		return s, fmt.Errorf("look how far the wave has come: %w", err)
	}
	d.tell("SCHEDULED %5d  ACCEPTED %5d  PROCESSING %5d   jobs: queued %5d  claimed %4d  dispatched %4d  completed %5d",
		s.scheduled, s.accepted, s.processing, s.queued, s.claimed, s.dispatched, s.completed)
	if s.other > 0 {
		return s, fmt.Errorf("%d jobs are dead, cancelled or uncertain; look into %s", s.other, d.file())
	}
	return s, nil
}
