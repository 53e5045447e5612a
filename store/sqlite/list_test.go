package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestJobsWithLabelsAreFoundPageByPage has more jobs than the store reads for a page. The first page is empty and has a
// cursor, and the next page has the job.
func TestJobsWithLabelsAreFoundPageByPage(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	for _, text := range []string{
		`with recursive n (i) as (select 1 union all select i + 1 from n where i < 30000)
			insert into sluice_job (seq, id, queue, tenant, key, labels, priority, payload, created_at)
			select i, unhex(printf('%032x', i)), 'q', 'acme', 'order-' || (i + 41), json_object('order', cast(i + 41 as text)), 5, '1', 0 from n`,
		`insert into sluice_done (seq, generation, queue, tenant, outcome, due_at, finished_at, attempts, releases, recoveries)
			select seq, 1, queue, tenant, 'completed', 0, 0, 0, 0, 0 from sluice_job`,
	} {
		if _, err := store.DB().ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
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
