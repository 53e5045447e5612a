package upkeep_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// Upkeep runs beside the workers until its context ends. Here it looks once, after the holder of a job
// has died and the lease of its claim has run out.
func Example() {
	ctx := context.Background()
	now := time.Now()
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, err := client.Enqueue(ctx, sluice.NewJob{Queue: "mail", Payload: []byte(`{}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = store.Claim(ctx, sluice.ClaimRequest{Queue: "mail", Limit: 1, Holder: "dead", Lease: time.Minute, Token: sluice.NewToken()})
	now = now.Add(2 * time.Minute)

	done, err := upkeep.New(store, upkeep.Options{}).Once(ctx, true)
	fmt.Println("recovered:", done.Recovered, err)
	job, _ := client.Job(ctx, receipt.ID)
	fmt.Println(job.State, "attempts", job.Attempts, "recoveries", job.Recoveries)
	// Output:
	// recovered: 1 <nil>
	// queued attempts 0 recoveries 1
}
