package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestAnOldTransactionMakesNoLookForDueSchedulesDear fires schedules while an old snapshot stays open. The index keeps
// an entry of each past fire meanwhile. The test counts the pages that later searches read from the low-water mark on.
func TestAnOldTransactionMakesNoLookForDueSchedulesDear(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	run(t, w.store, `insert into sluice.schedule (name, queue, next_at, definition, progress)
		select 's' || n, 'q', now() - interval '1 hour' + n * interval '1 millisecond', '{}', '{}' from generate_series(1, 2000) n`)
	old := w.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if _, err := old.Exec(t.Context(), "select count(*) from sluice.schedule"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		run(t, w.store, "update sluice.schedule set next_at = next_at + interval '1 minute'")
	}
	run(t, w.store, "update sluice.schedule set next_at = next_at + interval '2 hours'")
	mark := time.Now().Add(-time.Minute)
	for name, arguments := range map[string][]any{"schedules_next.sql": {mark}, "schedules_due.sql": {mark, 1000}} {
		if pages := pagesOf(t, w.store, name, arguments...); pages > 60 {
			t.Errorf("%s reads %d pages after 40,000 fires that have been", name, pages)
		}
	}
	if pages := pagesOf(t, w.store, "schedules_next.sql", mark.Add(-2*time.Hour)); pages <= 60 {
		t.Errorf("a look at all fires reads %d pages, so this test shows nothing", pages)
	}
}
