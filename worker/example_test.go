package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// Mail is the payload of the examples.
type Mail struct {
	To string `json:"to"`
}

var Mails = sluice.QueueOf[Mail]("mail")

// runOne enqueues a mail, runs a worker until the mail's job has ended, and prints how the job ended.
func runOne(handler worker.Handler[Mail]) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Backoff = sluice.Backoff{Base: time.Millisecond, Factor: 2, Max: time.Second}
	_, _ = client.EnsureQueue(ctx, Mails.Name(), settings, sluice.Act{By: "example"})
	receipt, err := Mails.Enqueue(ctx, client, Mail{To: "ada"}, sluice.EnqueueOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := worker.New(store, worker.Options{Slots: 4, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, Mails, handler, worker.QueueOptions{})
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	job, _ := client.Job(ctx, receipt.ID)
	for !job.State.Finished() {
		time.Sleep(time.Millisecond)
		job, _ = client.Job(ctx, receipt.ID)
	}
	stop() // drains
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s, failed attempts %d, releases %d, result %s\n", job.State, job.Attempts, job.Releases, job.Result)
}

func ExampleHandle() {
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		fmt.Println("mail to", job.Payload.To)
		return job.SetResult(map[string]int{"status": 250})
	})
	// Output:
	// mail to ada
	// completed, failed attempts 0, releases 0, result {"status":250}
}

// An error is a failed attempt; the job is tried again after the queue's backoff.
func ExampleHandler() {
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		if job.Attempt() < 3 {
			return errors.New("smtp: 451 try again")
		}
		return nil
	})
	// Output: completed, failed attempts 2, releases 0, result
}

// Snooze is for a job whose time has not come. It counts no attempt.
func ExampleSnooze() {
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		if job.Releases == 0 {
			return worker.Snooze(5 * time.Millisecond)
		}
		return nil
	})
	// Output: completed, failed attempts 0, releases 1, result
}

// Permanent is for what will never succeed: the job is dead at once.
func ExamplePermanent() {
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		return worker.Permanent(errors.New("smtp: 550 no such user"))
	})
	// Output: dead, failed attempts 1, releases 0, result
}

// RetryAfter is for a server that says when to come back.
func ExampleRetryAfter() {
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		if job.Attempt() == 1 {
			return worker.RetryAfter(5*time.Millisecond, errors.New("429 Too Many Requests"))
		}
		return nil
	})
	// Output: completed, failed attempts 1, releases 0, result
}

// With a checkpoint, a later attempt does not repeat finished work.
func ExampleJob_SaveCheckpoint() {
	type progress struct{ Uploaded bool }
	runOne(func(ctx context.Context, job *worker.Job[Mail]) error {
		var at progress
		if _, err := job.LoadCheckpoint(&at); err != nil {
			return err
		}
		if !at.Uploaded {
			fmt.Println("upload the attachment")
			if err := job.SaveCheckpoint(ctx, progress{Uploaded: true}); err != nil {
				return err
			}
			return errors.New("smtp: connection reset")
		}
		fmt.Println("send")
		return nil
	})
	// Output:
	// upload the attachment
	// send
	// completed, failed attempts 1, releases 0, result
}

// A unit test of a handler makes the job by hand, and reads back what the handler stored.
func ExampleJob() {
	var deliver worker.Handler[Mail] = func(ctx context.Context, job *worker.Job[Mail]) error {
		if err := job.SaveCheckpoint(ctx, "uploaded"); err != nil {
			return err
		}
		return job.SetResult("sent to " + job.Payload.To)
	}
	job := &worker.Job[Mail]{Payload: Mail{To: "ada"}}
	fmt.Println(deliver(context.Background(), job), string(job.Checkpoint), string(job.Result))
	// Output: <nil> "uploaded" "sent to ada"
}
