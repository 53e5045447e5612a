package postgres_test

import (
	"fmt"
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestManyQueuesAreReadAsTheyAre reads many queues by name again and again. The store caches them, but must show a
// change by SQL and a deleted queue at once.
func TestManyQueuesAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test", Reason: "test"}
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf("queue-%02d", n))
		if _, err := client.EnsureQueue(t.Context(), names[n], sluice.DefaultSettings(), act); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want int) map[string]sluice.Queue {
		t.Helper()
		queues, err := store.Queues(t.Context(), sluice.QueueFilter{Names: append(names, "unknown")})
		if err != nil || len(queues) != want {
			t.Fatalf("%d queues, want %d; %v", len(queues), want, err)
		}
		out := make(map[string]sluice.Queue)
		for i, q := range queues {
			if out[q.Name] = q; i > 0 && queues[i-1].Name >= q.Name || q.Now.IsZero() {
				t.Errorf("%s comes after %s, and was read at %s", q.Name, queues[max(i-1, 0)].Name, q.Now)
			}
		}
		return out
	}
	before := read(40)
	if _, err := store.Pool().Exec(t.Context(), "update sluice.queue set lease_ms = 7000 where name = 'queue-07'"); err != nil {
		t.Fatal(err)
	}
	after := read(40)
	if got := after["queue-07"].Settings.Lease.Seconds(); got != 7 {
		t.Errorf("the lease that SQL has changed is read as %vs, want 7s", got)
	}
	if !after["queue-08"].Now.After(before["queue-08"].Now) {
		t.Error("a queue that has not changed comes with an old clock")
	}
	if err := store.DeleteQueue(t.Context(), "queue-03", act); err != nil {
		t.Fatal(err)
	}
	if _, there := read(39)["queue-03"]; there {
		t.Error("a queue that was deleted is read")
	}
}
