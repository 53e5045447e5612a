package postgres_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestHoldersNameAProgramThatIsTooOldForTheSchema looks as a newer program does once it has migrated the database, while one
// ran that knows the steps before alone.
func TestHoldersNameAProgramThatIsTooOldForTheSchema(t *testing.T) {
	t.Parallel()
	store := openStore(t, pgtest.NewDatabase(t))
	change := func(statement string) {
		t.Helper()
		if _, err := store.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	said := func(id string) (out string) {
		t.Helper()
		holders, err := sluice.NewClient(store, sluice.ClientOptions{}).Holders(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holders {
			if h.ID == id {
				out = h.Trouble()
			}
		}
		return out
	}
	beat := func(id string) {
		t.Helper()
		if err := store.Beat(t.Context(), sluice.Holder{ID: id, Role: sluice.RoleWorker, Queues: []string{"mail"}}); err != nil {
			t.Fatal(err)
		}
	}
	const newest = " where version = (select max(version) from sluice.migration)"
	beat("old")
	change("update sluice.migration set applied_at = (select started from sluice.holder) + interval '1 microsecond'" + newest)
	if got := said("old"); got != "" {
		t.Errorf("after a step that its program works with it is told that %s", got)
	}
	change("update sluice.migration set works_from = version" + newest)
	beat("new")
	if got := said("old"); !strings.Contains(got, "its program is too old for the schema") {
		t.Errorf("after a step that its program does not work with it is told that %s", got)
	}
	if got := said("new"); got != "" {
		t.Errorf("of a newer program it is told that %s", got)
	}
}
