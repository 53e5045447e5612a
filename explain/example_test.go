package explain_test

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/store/memory"
)

func ExampleJob() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, _ := client.Enqueue(ctx, sluice.NewJob{Queue: "payments", Payload: []byte(`{"cents": 4200}`)})
	_ = client.Pause(ctx, "payments", sluice.Act{By: "ada", Reason: "the bank is down"})

	why, err := explain.Job(ctx, store, receipt.ID)
	for _, reason := range why.Closed() {
		fmt.Println(reason.Name)
	}
	fmt.Println(err)
	// Output:
	// paused
	// workers
	// <nil>
}
