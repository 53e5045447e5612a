package await_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

func ExampleResult() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})

	squares := sluice.QueueOf[int]("squares")
	w := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(w, squares, func(_ context.Context, job *worker.Job[int]) error {
		return job.SetResult(job.Payload * job.Payload)
	}, worker.QueueOptions{})
	go func() { _ = w.Run(ctx) }()

	waiter := await.New(store)
	receipt, err := squares.Enqueue(ctx, client, 7, sluice.EnqueueOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(await.Result[int](ctx, waiter, receipt.ID))
	// Output: 49 <nil>
}
