package local_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// Parcel is the payload of the example's jobs.
type Parcel struct {
	To string `json:"to"`
}

// A dispatcher starts runs and upkeep follows them; here both are done by hand.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	e := local.New(memory.New(memory.Options{}), local.Options{Worker: worker.Options{Logger: slog.New(slog.DiscardHandler)}})
	local.Handle(e, "ship", func(_ context.Context, run *local.Run[Parcel]) (any, error) {
		fmt.Println("ship to", run.Input.To)
		return map[string]string{"carrier": "mule"}, nil
	}, worker.QueueOptions{})
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()

	target := engine.Target{Queue: "parcels", Type: "ship", Results: true}
	run := engine.Run{Ref: "parcels-1", Job: sluice.NewID(), Generation: 1, Attempt: 1, Payload: []byte(`{"to":"ada"}`)}
	for range 2 { // the second start finds the run of the first
		if err := e.Start(ctx, target, []engine.Run{run})[0]; err != nil {
			fmt.Println(err)
		}
	}
	outcomes, _ := e.Outcomes(ctx, target, []string{"parcels-1"})
	for !outcomes[0].State.Over() {
		time.Sleep(time.Millisecond)
		outcomes, _ = e.Outcomes(ctx, target, []string{"parcels-1"})
	}
	stop() // drains the engine
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s: %s\n", outcomes[0].State, outcomes[0].Result)
	// Output:
	// ship to ada
	// completed: {"carrier":"mule"}
}
