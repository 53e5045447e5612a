package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// The squares of a list, one job each, and their sum.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	store := memory.New(memory.Options{})

	w := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(w, sluice.QueueOf[json.RawMessage]("list"), func(_ context.Context, job *worker.Job[json.RawMessage]) error {
		return job.SetResult([]int{1, 2, 3})
	}, worker.QueueOptions{})
	worker.Handle(w, sluice.QueueOf[int]("square"), func(_ context.Context, job *worker.Job[int]) error {
		return job.SetResult(job.Payload * job.Payload)
	}, worker.QueueOptions{})
	worker.Handle(w, sluice.QueueOf[json.RawMessage]("sum"), func(ctx context.Context, job *worker.Job[json.RawMessage]) error {
		squares, err := flow.Results[int](ctx, store, job.Job, "squares")
		if err != nil {
			return err
		}
		sum := 0
		for _, square := range squares {
			sum += square
		}
		fmt.Println(squares, "make", sum)
		return nil
	}, worker.QueueOptions{})
	go func() { _ = w.Run(ctx) }()
	go func() { _ = upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()

	id, err := flow.Start(ctx, store, flow.Flow{Name: "squares", Nodes: []flow.Node{
		{Name: "list", Queue: "list"},
		{Name: "squares", Queue: "square", After: []string{"list"}, Over: "list"},
		{Name: "sum", Queue: "sum", After: []string{"squares"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := await.New(store).Wait(ctx, id); err != nil {
		fmt.Println(err)
	}
	// Output: [1 4 9] make 14
}
