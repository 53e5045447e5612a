package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestRepairWakesLinesThatNobodyWouldWake deletes the changes of a tenant, as plain SQL may. Repair must wake the
// tenant queue.
func TestRepairWakesLinesThatNobodyWouldWake(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{
		"delete from sluice.tenant_change",
		"delete from sluice.tenant_change; insert into sluice.tenant_queue (queue, tenant, version, virtual_start, jobs, active) values ('q', 'acme', 1, 0, 0, false)",
		"delete from sluice.tenant_change; insert into sluice.tenant_queue (queue, tenant, version, virtual_start, jobs, active, at_limit) values ('q', 'acme', 1, 0, 32, false, true)",
	} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, migrated.Copy(t))
			client := sluice.NewClient(store, sluice.ClientOptions{})
			settings := sluice.DefaultSettings()
			settings.Fair = true
			if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			job := sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Pool().Exec(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			claim := func() int {
				claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 5, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
				if err != nil {
					t.Fatal(err)
				}
				return len(claimed.Jobs)
			}
			if got := claim(); got != 0 {
				t.Fatalf("claimed %d jobs of which nobody told", got)
			}
			if _, err := store.Repair(t.Context(), "upkeep"); err != nil {
				t.Fatal(err)
			}
			if got := claim(); got != 1 {
				t.Errorf("claimed %d jobs after the repair, want 1", got)
			}
		})
	}
}
