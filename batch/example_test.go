package batch_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

func ExampleOpen() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
	importer := sluice.Act{By: "importer"}

	rows, reports := sluice.QueueOf[int]("rows"), sluice.QueueOf[batch.Counts]("reports")
	w := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(w, rows, func(context.Context, *worker.Job[int]) error { return nil }, worker.QueueOptions{})
	worker.Handle(w, reports, func(_ context.Context, job *worker.Job[batch.Counts]) error {
		fmt.Printf("%d of %d rows imported\n", job.Payload.Completed, job.Payload.Total)
		cancel()
		return nil
	}, worker.QueueOptions{})
	go func() { _ = upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()

	b, err := batch.Open(ctx, store, batch.Batch{Name: "import", Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "reports"}}}, importer)
	if err != nil {
		fmt.Println(err)
		return
	}
	for row := range 1000 {
		if _, err := rows.Enqueue(ctx, client, row, sluice.EnqueueOptions{Batch: b.ID}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := batch.Close(ctx, store, b.ID, importer); err != nil {
		fmt.Println(err)
		return
	}
	_ = w.Run(ctx)
	// Output: 1000 of 1000 rows imported
}
