package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// mailsFor stores a mail to each of these people.
func mailsFor(people ...string) (sluice.Store, *sluice.Client) {
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, to := range people {
		if _, err := Mails.Enqueue(context.Background(), client, Mail{To: to}, sluice.EnqueueOptions{}); err != nil {
			fmt.Println(err)
		}
	}
	return store, client
}

// One call sends many mails. A mail without an address is buried alone.
func ExampleHandleMany() {
	store, client := mailsFor("ada", "", "bob")
	w := worker.New(store, worker.Options{Logger: slog.New(slog.DiscardHandler)})
	worker.HandleMany(w, Mails, func(_ context.Context, jobs []*worker.Job[Mail]) error {
		sent := 0
		for _, job := range jobs {
			if job.Payload.To == "" {
				if err := job.Settle(worker.Permanent(errors.New("no address"))); err != nil {
					return err
				}
				continue
			}
			sent++
		}
		fmt.Printf("%d mails in one call\n", sent)
		return nil
	}, worker.ManyOptions{Size: 500})
	if _, err := w.Once(context.Background()); err != nil {
		fmt.Println(err)
	}
	depth, _ := client.Depth(context.Background(), Mails.Name())
	fmt.Printf("%d dead\n", depth.Dead)
	// Output:
	// 2 mails in one call
	// 1 dead
}

// A middleware wraps every handler, and sees the payload as a Go value.
func ExampleMiddleware() {
	store, _ := mailsFor("ada")
	announce := func(ctx context.Context, job *worker.Job[any], next func(context.Context) error) error {
		fmt.Printf("%s gets %+v\n", job.Queue, job.Payload)
		err := next(ctx)
		fmt.Println("ended with", err)
		return err
	}
	w := worker.New(store, worker.Options{Middleware: []worker.Middleware{announce}, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, Mails, func(context.Context, *worker.Job[Mail]) error { return nil }, worker.QueueOptions{})
	if _, err := w.Once(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mail gets {To:ada}
	// ended with <nil>
}

// A program that cron starts runs the jobs that are due, and ends.
func ExampleWorker_Once() {
	store, _ := mailsFor("ada", "bob")
	w := worker.New(store, worker.Options{Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, Mails, func(_ context.Context, job *worker.Job[Mail]) error {
		fmt.Println("mail to", job.Payload.To)
		return nil
	}, worker.QueueOptions{})
	ran, err := w.Once(context.Background())
	fmt.Println(ran, err)
	// Output:
	// mail to ada
	// mail to bob
	// 2 <nil>
}
