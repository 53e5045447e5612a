package postgres_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestJobsWithLabelsAreFoundPageByPage has more jobs than the store reads for a page. The first page is empty and has a
// cursor, and the next page has the job.
func TestJobsWithLabelsAreFoundPageByPage(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	if _, err := store.Pool().Exec(t.Context(), `
		insert into sluice.job (id, queue, tenant, key, labels, priority, payload)
			select lpad(to_hex(n), 32, '0')::uuid, 'q', 'acme', 'order-' || n + 41, jsonb_build_object('order', (n + 41)::text), 5, '1' from generate_series(1, 30000) n;
		insert into sluice.done (id, generation, queue, tenant, outcome, due_at, attempts, releases, recoveries)
			select id, 1, queue, tenant, 'completed', now(), 0, 0, 0 from sluice.job`); err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for last, oldestFirst := range map[string]bool{"42": false, "30041": true} {
		filter := sluice.JobFilter{Labels: map[string]string{"order": last}, OldestFirst: oldestFirst}
		first, err := client.Jobs(t.Context(), filter)
		if err != nil || len(first.Jobs) != 0 || first.Cursor == "" || first.Next.IsZero() {
			t.Fatalf("first page: %d jobs, mark %q, next %s, %v", len(first.Jobs), first.Cursor, first.Next, err)
		}
		for _, next := range []sluice.JobFilter{{Cursor: first.Cursor}, {Before: first.Next}} {
			next.Labels, next.OldestFirst = filter.Labels, oldestFirst
			second, err := client.Jobs(t.Context(), next)
			if err != nil || len(second.Jobs) != 1 || second.Cursor != "" || !second.Next.IsZero() {
				t.Errorf("second page: %d jobs, mark %q, %v", len(second.Jobs), second.Cursor, err)
			}
		}
	}
	for _, whole := range []sluice.JobFilter{{Tenant: "acme"}, {Key: "order-42"}} {
		whole.Labels = map[string]string{"order": "42"}
		page, err := client.Jobs(t.Context(), whole)
		if err != nil || len(page.Jobs) != 1 || page.Cursor != "" || page.Jobs[0].Key != "order-42" {
			t.Errorf("with %+v: %d jobs, mark %q, %v", whole, len(page.Jobs), page.Cursor, err)
		}
	}
}
