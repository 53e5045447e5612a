package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// RecorderOptions adjust a Recorder. The zero value works.
type RecorderOptions struct {
	// Logger gets a line when statistics cannot be stored. Default: slog.Default.
	Logger *slog.Logger
}

// Recorder is an observer that counts what its process does and adds it to the store's statistics. A process needs one,
// for its store and its engines together; Run adds what was counted. It may be used by many goroutines.
type Recorder struct {
	store   sluice.Store
	log     *event.Log
	holder  string
	counter sluice.StatCounter

	mu      sync.Mutex    // of what adds to the store
	ahead   time.Duration // how far the store's clock is ahead of this machine's
	known   bool          // it was asked
	pending []sluice.Stat // taken and not stored yet
}

// lastAdd is how long the last slot may take to be stored when the process ends.
const lastAdd = 5 * time.Second

// NewRecorder makes a recorder that adds to a store. It does no reading or writing itself.
func NewRecorder(store sluice.Store, options RecorderOptions) *Recorder {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	holder := sluice.NewHolderID()
	return &Recorder{store: sluice.GivenStore(store), log: event.NewLog(options.Logger, holder, 0), holder: holder}
}

// Begin does nothing.
func (*Recorder) Begin(ctx context.Context, _ *Call) context.Context { return ctx }

// End counts what a call has done.
func (r *Recorder) End(_ context.Context, c *Call) {
	if c.Kind == KindEngine && c.Name == "start" {
		r.startFailures(c)
		return
	}
	for m := range c.Moves() {
		run := m.Run
		if m.Event == sluice.EventBury && !m.Failed {
			run = sluice.Unknown
			if c.Name == "recover" || c.Name == "settle" { // it has lost its holders: its lease ran out, too
				r.counter.Moved(m.Queue, m.Tenant, sluice.EventRecover, m.Count, sluice.Unknown, sluice.Unknown, sluice.Unknown)
			}
		}
		r.counter.Moved(m.Queue, m.Tenant, m.Event, m.Count, m.Wait, run, m.Total)
	}
}

func (r *Recorder) startFailures(c *Call) {
	for i, err := range c.Errs {
		if err != nil && i < len(c.Runs) {
			r.counter.StartFailed(c.Queue, c.Runs[i].Tenant, 1)
		}
	}
}

// Run adds what was counted each 10 s until ctx ends, and then the rest, and returns nil. Let it end after everything that
// it observes. What cannot be stored is logged and tried again with the next, for as long as a store takes it; nothing is
// counted twice by that.
func (r *Recorder) Run(ctx context.Context) error {
	ticker := time.NewTicker(sluice.StatFine)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.try(ctx, false)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAdd)
			defer cancel()
			r.try(last, true)
			return nil
		}
	}
}

func (r *Recorder) try(ctx context.Context, all bool) {
	if err := r.add(ctx, all); err != nil && ctx.Err() == nil || err != nil && all {
		r.log.Tell(event.StatsNotStored, "", "error", err)
	}
}

// Flush adds all that was counted so far, also in the present slot, which ends by that: for programs that do one thing
// and end, and need no Run.
func (r *Recorder) Flush(ctx context.Context) error { return r.add(ctx, true) }

func (r *Recorder) add(ctx context.Context, all bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 && r.counter.Empty() {
		return nil // a process that does nothing asks for nothing
	}
	if err := r.askClock(ctx); err != nil && !r.known {
		return err
	}
	now := time.Now().Add(r.ahead)
	if all {
		r.pending = append(r.pending, r.counter.TakeAll(now)...)
	} else {
		r.pending = append(r.pending, r.counter.Take(now)...)
	}
	r.forgetOld(now)
	if len(r.pending) == 0 {
		return nil
	}
	err := r.store.AddStats(ctx, r.holder, r.pending)
	if err == nil || errors.Is(err, sluice.ErrInvalid) { // that would be refused for ever
		r.pending = nil
	}
	return err
}

// askClock finds out how far the store's clock is ahead.
func (r *Recorder) askClock(ctx context.Context) error {
	before := time.Now()
	shown, err := r.store.Now(ctx)
	if err != nil {
		return err
	}
	r.ahead = shown.Sub(before.Add(time.Since(before) / 2))
	r.known = true
	return nil
}

// forgetOld drops slots that no store takes any more.
func (r *Recorder) forgetOld(now time.Time) {
	first := 0
	for first < len(r.pending) && r.pending[first].At.Before(now.Add(-sluice.StatFineKept)) {
		first++
	}
	r.pending = r.pending[first:]
}
