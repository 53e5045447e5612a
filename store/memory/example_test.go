package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// In tests the clock can be the test's own: an hour passes at once.
func Example() {
	ctx := context.Background()
	now := time.Date(2030, 1, 1, 15, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	_, err := client.Enqueue(ctx, sluice.NewJob{
		Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Delay: time.Hour},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	depth, _ := client.Depth(ctx, "payments")
	fmt.Println("scheduled", depth.Scheduled, "ready", depth.Ready)
	now = now.Add(time.Hour)
	depth, _ = client.Depth(ctx, "payments")
	fmt.Println("scheduled", depth.Scheduled, "ready", depth.Ready)
	// Output:
	// scheduled 1 ready 0
	// scheduled 0 ready 1
}
