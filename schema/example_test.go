package schema_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/store/memory"
)

// A queue with a payload_schema refuses what does not match it, before anything is stored.
func Example() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{PayloadChecker: schema.New()})
	settings := sluice.DefaultSettings()
	settings.PayloadSchema = `{"type": "object", "required": ["cents"], "properties": {"cents": {"type": "integer", "minimum": 1}}}`
	if _, err := client.EnsureQueue(ctx, "payments", settings, sluice.Act{By: "ada"}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := client.Enqueue(ctx, sluice.NewJob{Queue: "payments", Payload: []byte(`{"cents": 4200}`)})
	fmt.Println(err)
	_, err = client.Enqueue(ctx, sluice.NewJob{Queue: "payments", Payload: []byte(`{"account": "acme"}`)})
	fmt.Println(errors.Is(err, sluice.ErrInvalid))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// enqueue into "payments": invalid payload: it does not match the payload_schema of queue "payments": / lacks cents
}
