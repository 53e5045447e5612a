// Package pipeline does the work of the three stages. Each handler may be called again at any point: it looks whether its
// effect is there already, and stores it in the transaction that completes its job and enqueues the next one.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/logs"
	"github.com/sluice-queue/sluice/apps/conversations/mind"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// Options adjust a Pipeline.
type Options struct {
	// Mind looks at conversations. Default: mind.Local.
	Mind mind.Mind
	// Target says where learnings go, without the learning. Nil: they stay here.
	Target *stages.Upload
	// Approved are the hosts that uploads may speak to; jobs that name others are buried.
	Approved upload.Approved
	// MinConfidence is below which learnings are left out. Default 0.7.
	MinConfidence float64
	// HashKey keys the hashes of what was removed; see hook.Options.
	HashKey []byte
	// Slots is how many jobs run at once, UploadSlots how many of them upload. Defaults 4 and 2.
	Slots, UploadSlots int
	// Offline is how long an upload waits while a node cannot be reached; that costs no attempt. Default 15 s.
	Offline time.Duration
	// Logger gets one line per event, scrubbed. Default: slog.Default.
	Logger *slog.Logger
	// Monitor is the loopback address of /metrics, /healthz and /readyz. Default: they are not there.
	Monitor string
}

// Pipeline does the work. Run does it until it is told to end.
type Pipeline struct {
	db      *records.Database
	options Options
	http    *http.Client

	mu     sync.Mutex
	chains map[stages.Chain]*upload.Chain
}

// New makes a Pipeline of an open file.
func New(db *records.Database, o Options) *Pipeline {
	if o.Mind == nil {
		o.Mind = mind.Local{}
	}
	if o.MinConfidence == 0 {
		o.MinConfidence = 0.7
	}
	if o.Slots == 0 {
		o.Slots = 4
	}
	if o.UploadSlots == 0 {
		o.UploadSlots = 2
	}
	if o.Offline == 0 {
		o.Offline = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = logs.Scrubbed(o.Logger)
	return &Pipeline{db: db, options: o, http: o.Approved.Client(), chains: make(map[stages.Chain]*upload.Chain)}
}

// Run works until ctx ends, and lets what it does then finish. It also recovers what a worker that died has held, and takes
// in the events that hooks had to leave in the spool.
func (p *Pipeline) Run(ctx context.Context) error {
	watched, err := monitor.New(p.db.Store, monitor.Options{Logger: p.options.Logger})
	if err != nil {
		return err
	}
	p.db = p.db.Watched(watched.Enqueuer)
	w := worker.New(watched.Store, worker.Options{Slots: p.options.Slots, PayloadChecker: p.db.Checker, Logger: p.options.Logger, Scrub: logs.Scrub})
	worker.Handle(w, stages.Validation, guarded(p, p.validate), worker.QueueOptions{})
	worker.Handle(w, stages.Extraction, guarded(p, p.extract), worker.QueueOptions{})
	worker.Handle(w, stages.Uploading, guarded(p, p.upload), worker.QueueOptions{Slots: p.options.UploadSlots})
	tended := make(chan error, 1)
	tending, stop := context.WithCancel(ctx)
	forgetting := make(chan struct{})
	go func() {
		defer close(forgetting)
		p.forget(tending)
	}()
	takingIn := make(chan struct{})
	go func() {
		defer close(takingIn)
		p.takeIn(tending)
	}()
	u := upkeep.New(watched.Store, upkeep.Options{PayloadChecker: p.db.Checker, Logger: p.options.Logger, Scrub: logs.Scrub})
	go func() { tended <- u.Run(tending) }()
	watched.Watch(api.Beats("upkeep", u.Status))
	err = watched.Beside(ctx, p.options.Monitor, w.Run)
	stop()
	err = errors.Join(err, <-tended)
	<-forgetting
	<-takingIn
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.chains {
		c.Close()
	}
	return err
}

// forgetEvery is how long what the second stage removed may be left in the journal.
const forgetEvery = time.Minute

// forget empties the journal now and then, and at the end.
func (p *Pipeline) forget(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		if err := p.db.Forget(context.WithoutCancel(ctx)); err != nil {
			p.options.Logger.Warn("journal not emptied", "error", err)
		}
	}
}

// takeInEvery is how long an event may lie in the spool while a worker could store it.
const takeInEvery = 250 * time.Millisecond

// takeIn stores events that wait in the spool. The log gets a line when that fails, and not again for the same reason.
func (p *Pipeline) takeIn(ctx context.Context) {
	tick := time.NewTicker(takeInEvery)
	defer tick.Stop()
	spool, told := hook.SpoolOf(p.db.Path), ""
	for {
		err := spool.TakeIn(ctx, p.db, p.options.Logger, nil)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			p.options.Logger.Warn("events wait in the spool", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Skipped is the result of a job whose effect was there.
type Skipped struct {
	Skipped bool   `json:"skipped"`
	Reason  string `json:"reason"`
}

// guarded says what a handler's errors mean, and hands a job back uncounted while a node cannot be reached. The worker
// scrubs their texts before they are stored and logged (C-99, S-4).
func guarded[T any](p *Pipeline, do worker.Handler[T]) worker.Handler[T] {
	return func(ctx context.Context, job *worker.Job[T]) error {
		err := do(ctx, job)
		var buried hopeless
		switch {
		case err == nil:
			return nil
		case unreachable(err):
			p.options.Logger.Warn("node out of reach", "job", job.ID, "queue", job.Queue, "error", err)
			return worker.Snooze(p.options.Offline)
		case errors.As(err, &buried):
			return worker.Permanent(err)
		}
		return err
	}
}

// unreachable reports whether nobody was there to talk to.
func unreachable(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial" && !errors.Is(err, upload.ErrNotApproved)
}

// hopeless is an error that no further attempt mends.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// forGood says that no further attempt mends an error.
func forGood(err error) error { return hopeless{err} }

// finish completes a job, with what else is to be stored with it.
func finish[T any](ctx context.Context, p *Pipeline, job *worker.Job[T], result any, also func(tx records.Tx) error) error {
	return p.db.Transact(ctx, func(tx records.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		return tx.Complete(ctx, job.Claim, result)
	})
}

// enqueue stores the job of the next stage.
func enqueue(ctx context.Context, tx records.Tx, job sluice.NewJob, err error) error {
	if err != nil {
		return err
	}
	_, err = tx.Client.Enqueue(ctx, job) // one that is there already is no error
	return err
}
