// Command riversqlite is the cell of River on SQLite. A separate module pins an older River than the PostgreSQL
// benchmarks, because River's newest available SQLite driver needs it. The protocol is package cell's: a task in an
// environment variable, a result as a line of JSON.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	batch        = 1000
	payloadBytes = 1000
	lookEvery    = 5 * time.Millisecond
	// unfinishedSQL names the states: then River's index answers it.
	unfinishedSQL = `select exists (select 1 from river_job
		where state in ('available', 'running', 'retryable', 'scheduled', 'pending'))`
)

// task holds the fields of a cell's task that this program needs.
type task struct {
	Kind  string
	Place string
	Jobs  int
	Slots int
}

type parcel struct {
	P string `json:"p"`
}

// Kind returns River's name for a parcel.
func (parcel) Kind() string { return "parcel" }

type worker struct {
	river.WorkerDefaults[parcel]
	handled atomic.Int64
}

func (w *worker) Work(context.Context, *river.Job[parcel]) error {
	w.handled.Add(1)
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // exit with the parent, which holds the other end of standard input
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	result, err := run(ctx)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		slog.Error("cell failed", "system", "river-sqlite", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (map[string]float64, error) {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv("SLUICE_BENCH_CELL")), &t); err != nil {
		return nil, fmt.Errorf("read the task: %w", err)
	}
	if t.Kind != "work" {
		return nil, fmt.Errorf("there is no kind of cell %q here", t.Kind)
	}
	db, err := openFile(t.Place)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	w := &worker{}
	sender, client, err := open(ctx, db, t, w)
	if err != nil {
		return nil, err
	}
	cpuBefore, begun := usedCPU(), time.Now()
	if err := enqueue(ctx, sender, t.Jobs); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	enqueueTook := time.Since(begun)
	begun = time.Now()
	if err := workOff(ctx, db, client, w, t.Jobs); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	workTook := time.Since(begun)
	if err := client.Stop(ctx); err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	n := float64(t.Jobs)
	used := (usedCPU() - cpuBefore).Seconds() * 1e6 / n
	return map[string]float64{
		"enqueue_rate": n / enqueueTook.Seconds(), "work_rate": n / workTook.Seconds(),
		"whole_rate": n / (enqueueTook + workTook).Seconds(), "client_cpu": used, "total_cpu": used,
	}, nil
}

// openFile opens the file with the settings of the other peers, and one connection, as River's documentation asks.
func openFile(path string) (*sql.DB, error) {
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "cache_size(-65536)", "wal_autocheckpoint(4000)",
	}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// open makes two clients: sender stores, client works. In this version, InsertManyFast panics on SQLite in a client
// with queues to work.
func open(ctx context.Context, db *sql.DB, t task, w *worker) (sender, client *river.Client[*sql.Tx], err error) {
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, nil, fmt.Errorf("migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	if sender, err = river.NewClient(riversqlite.New(db), &river.Config{Workers: workers, Logger: quiet}); err != nil {
		return nil, nil, err
	}
	client, err = river.NewClient(riversqlite.New(db), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: t.Slots}},
		FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond,
		Workers: workers, Logger: quiet,
	})
	return sender, client, err
}

func enqueue(ctx context.Context, client *river.Client[*sql.Tx], n int) error {
	args := parcel{P: strings.Repeat("x", payloadBytes)}
	for left := n; left > 0; left -= batch {
		params := make([]river.InsertManyParams, min(left, batch))
		for i := range params {
			params[i].Args = args
		}
		if _, err := client.InsertManyFast(ctx, params); err != nil {
			return err
		}
	}
	return nil
}

func workOff(ctx context.Context, db *sql.DB, client *river.Client[*sql.Tx], w *worker, n int) error {
	if err := client.Start(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if w.handled.Load() >= int64(n) {
			var left bool
			err := db.QueryRowContext(ctx, unfinishedSQL).Scan(&left)
			if err != nil || !left {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("after %d of %d jobs", w.handled.Load(), n))
		case <-ticker.C:
		}
	}
}

// usedCPU returns the user and system time of this process.
func usedCPU() time.Duration {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own) // fails only for a wrong argument
	return time.Duration(own.Utime.Nano() + own.Stime.Nano())
}
