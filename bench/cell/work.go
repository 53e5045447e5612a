package cell

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// batch is the number of jobs per enqueue.
	batch = 1000
	// payloadBytes is the length of a payload's text, in bytes.
	payloadBytes = 1000
	// lookEvery is the polling interval of waitUntil.
	lookEvery = 5 * time.Millisecond
)

// Parcel is the payload of every job, in every system.
type Parcel struct {
	P string `json:"p"`
	// Sent is the time just before the enqueue, in ns since 1970; 0: not needed. In a Life cell: the due instant.
	Sent int64 `json:"sent,omitempty"`
}

func newParcel() Parcel { return Parcel{P: strings.Repeat("x", payloadBytes)} }

// queue is a system under measurement.
type queue interface {
	// enqueue stores n jobs, at most a batch.
	enqueue(ctx context.Context, n int) error
	// start starts the system's worker.
	start(ctx context.Context) error
	// unfinished reports whether the database still holds unfinished jobs.
	unfinished(ctx context.Context) (bool, error)
	// stop stops the worker, if it was started, and closes the database.
	stop(ctx context.Context) error
}

// handle is called by a handler with each parcel.
type handle func(Parcel)

// opener opens a system. Its handlers only call handle.
type opener func(ctx context.Context, task Task, handle handle) (queue, error)

var openers = map[string]opener{
	Sluice: openSluice, SluiceAcross: openSluice, River: openRiver, Goqite: openGoqite, Backlite: openBacklite,
	Bare: openBare, SluiceSQL: openSQL, SluiceHTTP: openHTTP,
}

func open(ctx context.Context, task Task, handle handle) (queue, error) {
	opener, known := openers[task.System]
	if !known {
		return nil, fmt.Errorf("there is no system %q", task.System)
	}
	if task.System == Sluice && task.OwnTx != "" {
		opener = openOwnTx
	}
	return opener(ctx, task, handle)
}

// measureWork stores a backlog, then works it off.
func measureWork(ctx context.Context, task Task) (Result, error) {
	var handled atomic.Int64
	q, err := open(ctx, task, func(Parcel) { handled.Add(1) })
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	enqueueTook, enqueueCPU, err := measured(task, func() (time.Duration, error) { return enqueueAll(ctx, q, task.Jobs) })
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, fmt.Errorf("before the work: %w", err)
	}
	leave, err := openConsoles(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open consoles: %w", err)
	}
	defer leave()
	workTook, workCPU, err := measured(task, func() (time.Duration, error) { return workOff(ctx, q, task.Jobs, &handled) })
	if err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	if extra := handled.Load() - int64(task.Jobs); extra != 0 {
		slog.Warn("jobs ran more than once", "system", task.System, "extra", extra)
	}
	result := workResult(task, enqueueTook, workTook, enqueueCPU.plus(workCPU))
	result[EnqueueCPU], result[WorkCPU] = enqueueCPU.per1000(task.Jobs), workCPU.per1000(task.Jobs)
	if task.Keyed {
		bytes, err := sizeOf(ctx, task)
		result[Bytes] = bytes / float64(task.Jobs)
		return result, err
	}
	return result, nil
}

func workResult(task Task, enqueueTook, workTook time.Duration, used cpu) Result {
	rate := func(d time.Duration) float64 { return float64(task.Jobs) / d.Seconds() }
	result := Result{EnqueueRate: rate(enqueueTook), WorkRate: rate(workTook), WholeRate: rate(enqueueTook + workTook)}
	used.into(result, task.Jobs, task)
	return result
}

// measured runs one phase, and returns the phase's time and the processor time.
func measured(task Task, phase func() (time.Duration, error)) (time.Duration, cpu, error) {
	before, err := usedCPU(task.ServerPID)
	if err != nil {
		return 0, cpu{}, err
	}
	took, err := phase()
	if err != nil {
		return 0, cpu{}, err
	}
	after, err := usedCPU(task.ServerPID)
	return took, after.minus(before), err
}

// enqueueAll stores n jobs in batches, and returns the time.
func enqueueAll(ctx context.Context, q queue, n int) (time.Duration, error) {
	begun := time.Now()
	for left := n; left > 0; left -= batch {
		if err := q.enqueue(ctx, min(left, batch)); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}

// workOff works off all jobs, then stops the system. The returned time excludes the stop; the processor time does not.
func workOff(ctx context.Context, q queue, n int, handled *atomic.Int64) (time.Duration, error) {
	begun := time.Now()
	if err := q.start(ctx); err != nil {
		return 0, err
	}
	if err := waitUntil(ctx, func() (bool, error) { return handled.Load() >= int64(n), nil }); err != nil {
		return 0, fmt.Errorf("after %d of %d jobs: %w", handled.Load(), n, err)
	}
	err := waitUntil(ctx, func() (bool, error) {
		left, err := q.unfinished(ctx)
		return !left, err
	})
	if err != nil {
		return 0, err
	}
	took := time.Since(begun)
	return took, q.stop(ctx)
}

// waitUntil polls done every lookEvery, until it is true or fails, or ctx ends.
func waitUntil(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// tidy gives a PostgreSQL database fresh statistics and a checkpoint, for every system alike. With stale statistics, it
// does nothing.
func tidy(ctx context.Context, task Task) error {
	if task.Store != Postgres || task.Stale != "" {
		return nil
	}
	return runOnServer(ctx, task, "analyze", "checkpoint")
}

// runOnServer runs statements in order on a new connection.
func runOnServer(ctx context.Context, task Task, statements ...string) error {
	return onServer(ctx, task, func(conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// onServer runs a function with a new connection to a task's PostgreSQL database.
func onServer(ctx context.Context, task Task, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, withoutPool(task.Place))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return do(conn)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
