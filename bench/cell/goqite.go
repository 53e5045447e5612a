package cell

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// goqiteQueue is goqite with its job runner.
type goqiteQueue struct {
	db     *sql.DB
	queue  *goqite.Queue
	slots  int
	handle handle

	quit  context.CancelFunc
	ended chan struct{}
}

// openFile opens a SQLite file with Sluice's journal mode, synchronous=FULL and checkpoint interval. The cache is
// 64 MiB; Sluice's writer has 32 MiB.
func openFile(task Task) (*sql.DB, error) {
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)", "cache_size(-65536)", "wal_autocheckpoint(4000)",
	}}
	db, err := sql.Open("sqlite", "file:"+task.Place+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(max(task.Connections, 1))
	db.SetMaxIdleConns(max(task.Connections, 1))
	return db, nil
}

func openGoqite(ctx context.Context, task Task, handle handle) (queue, error) {
	db, err := openFile(task)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, task.Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	q := goqite.New(goqite.NewOpts{DB: db, Name: parcels.Name(), Timeout: 30 * time.Second})
	return &goqiteQueue{db: db, queue: q, slots: task.Slots, handle: handle}, nil
}

// enqueue stores n jobs in one transaction of ours, because goqite has no batch call.
func (q *goqiteQueue) enqueue(ctx context.Context, n int) error {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for range n {
		body, err := json.Marshal(newParcel())
		if err != nil {
			return err
		}
		if _, err := jobs.CreateTx(ctx, tx, q.queue, parcels.Name(), goqite.Message{Body: body}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// enqueueOne sends a message without the job runner's wrapping: goqite's cheapest way.
func (q *goqiteQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	body, err := json.Marshal(parcel)
	if err != nil {
		return err
	}
	return q.queue.Send(ctx, goqite.Message{Body: body})
}

func (q *goqiteQueue) start(ctx context.Context) error {
	ctx, q.quit = context.WithCancel(ctx)
	runner := jobs.NewRunner(jobs.NewRunnerOpts{
		Queue: q.queue, Limit: q.slots, PollInterval: time.Millisecond, Extend: 30 * time.Second, Log: faultLogger{},
	})
	runner.Register(parcels.Name(), func(_ context.Context, body []byte) error {
		var parcel Parcel
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&parcel); err != nil {
			return err
		}
		q.handle(parcel)
		return nil
	})
	q.ended = make(chan struct{})
	go func() {
		defer close(q.ended)
		runner.Start(ctx)
	}()
	return nil
}

func (q *goqiteQueue) unfinished(ctx context.Context) (bool, error) {
	var left bool
	err := q.db.QueryRowContext(ctx, "select exists (select 1 from goqite)").Scan(&left)
	return left, err
}

func (q *goqiteQueue) stop(context.Context) error {
	if q.quit != nil {
		q.quit()
		<-q.ended
	}
	return q.db.Close()
}

// faultLogger logs only events with an error, because goqite's runner logs all events at one level.
type faultLogger struct{}

func (faultLogger) Info(event string, args ...any) {
	for _, arg := range args {
		if _, is := arg.(error); is {
			slog.Warn(event, args...)
			return
		}
	}
}
