package changes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/store/memory"
)

func Example() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	act := sluice.Act{By: "ada", Reason: "slow bank"}
	_, _ = client.EnsureQueue(ctx, "payments", sluice.DefaultSettings(), act)

	slow := func(s *sluice.Settings) error { s.Lease = 5 * time.Minute; return nil }
	queue, err := changes.For(ctx, client, "payments", 30*time.Minute, act, slow)
	scheduled, _ := changes.List(queue)
	fmt.Println(queue.Settings.Lease, len(scheduled), err)

	queue, err = changes.Undo(ctx, client, "payments", sluice.Act{By: "ada", Reason: "fast again"})
	fmt.Println(queue.Settings.Lease, len(queue.Scheduled), err)

	busy := changes.Window{From: "16:00", To: "18:00", Zone: "UTC"}
	queue, err = changes.Schedule(ctx, client, "payments", busy, map[string]string{"rate": "200/s"}, act)
	scheduled, _ = changes.List(queue)
	fmt.Println(scheduled[0], err)
	// Output:
	// 5m0s 1 <nil>
	// 1m0s 0 <nil>
	// rate=200/s from 16:00 to 18:00 UTC <nil>
}

func ExampleCancel() {
	ctx := context.Background()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	act := sluice.Act{By: "ada", Reason: "busy hours"}
	_, _ = client.EnsureQueue(ctx, "payments", sluice.DefaultSettings(), act)
	busy := changes.Window{From: "16:00", To: "18:00", Zone: "UTC"}
	queue, _ := changes.Schedule(ctx, client, "payments", busy, map[string]string{"rate": "200/s"}, act)

	scheduled, _ := changes.List(queue)
	queue, err := changes.Cancel(ctx, client, "payments", scheduled[0].ID, act)
	fmt.Println(len(queue.Scheduled), err)
	// Output:
	// 0 <nil>
}
