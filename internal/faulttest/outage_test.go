package faulttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/worker"
)

// breakage breaks the connection of a transaction that completes its job, at one of the possible moments.
type breakage func(ctx context.Context, tx pgx.Tx) error

// terminated ends the connection from the server's side, as a restart, an operator or a pooler does.
func terminated(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())")
	return err
}

// cut ends the connection from the network's side.
func cut(ctx context.Context, tx pgx.Tx) error {
	if err := tx.Conn().PgConn().Conn().Close(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "select 1")
	return err
}

// answerLost sends the commit, and ends the connection before its answer.
func answerLost(ctx context.Context, tx pgx.Tx) error {
	front := tx.Conn().PgConn().Frontend()
	front.SendQuery(&pgproto3.Query{String: "commit"})
	if err := front.Flush(); err != nil {
		return err
	}
	return cut(ctx, tx)
}

// TestBrokenConnectionsCostNoAttempt breaks the connection under hundreds of handlers, which complete their jobs in
// their own transactions. A job dies at its first failed attempt, so one counted attempt would bury it.
func TestBrokenConnectionsCostNoAttempt(t *testing.T) {
	t.Parallel()
	const jobs = 400
	store, _ := behindProxy(t)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	queue := sluice.QueueOf[int]("posts")
	if _, err := store.Pool().Exec(t.Context(), "create table posted (n integer primary key)"); err != nil {
		t.Fatal(err)
	}
	settings := sluice.DefaultSettings()
	settings.MaxAttempts = 1
	if _, err := client.EnsureQueue(t.Context(), "posts", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for n := range jobs {
		if _, err := queue.Enqueue(t.Context(), client, n, sluice.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var broken [jobs]atomic.Bool
	w := worker.New(store, worker.Options{Slots: 20, Logger: quiet})
	worker.Handle(w, queue, func(ctx context.Context, job *worker.Job[int]) error {
		moment := func(no int, how breakage, tx pgx.Tx) error {
			if job.Payload%4 != no || broken[job.Payload].Swap(true) {
				return nil
			}
			return how(ctx, tx)
		}
		return pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
			if err := moment(0, terminated, tx); err != nil {
				return fmt.Errorf("post: %w", err)
			}
			if _, err := tx.Exec(ctx, "insert into posted values ($1)", job.Payload); err != nil {
				return err
			}
			if err := moment(1, cut, tx); err != nil {
				return fmt.Errorf("look: %w", err)
			}
			if err := postgres.CompleteTx(ctx, tx, job.Claim, nil); err != nil {
				return err
			}
			if err := moment(2, terminated, tx); err != nil {
				return err
			}
			return moment(3, answerLost, tx)
		})
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var posted, unfinished int
		err := store.Pool().QueryRow(t.Context(), "select (select count(*) from posted), (select count(*) from sluice.live)").Scan(&posted, &unfinished)
		if err == nil && unfinished == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs were posted, %d are unfinished: %v", posted, unfinished, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("drain: %v", err)
	}
	var posted, attempts, dead int
	const books = "select (select count(*) from posted), coalesce(sum(attempts), 0), count(*) filter (where outcome <> 'completed') from sluice.done"
	if err := store.Pool().QueryRow(t.Context(), books).Scan(&posted, &attempts, &dead); err != nil {
		t.Fatal(err)
	}
	if posted != jobs || attempts != 0 || dead != 0 {
		t.Errorf("%d of %d jobs were posted, %d attempts were counted and %d jobs did not complete", posted, jobs, attempts, dead)
	}
	for n := range broken {
		if !broken[n].Load() {
			t.Errorf("the connection of job %d was never broken", n)
		}
	}
}
