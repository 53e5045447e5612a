package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestHoldersNameAProgramThatIsTooOldForTheSchema looks as a newer program does once it has migrated the file, while one
// ran that knows the steps before alone.
func TestHoldersNameAProgramThatIsTooOldForTheSchema(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	change := func(statement string) {
		t.Helper()
		if _, err := store.DB().ExecContext(t.Context(), statement); err != nil {
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
	const newest = " where version = (select max(version) from sluice_migration)"
	beat("old")
	// The file may have been made while another test had set the clock.
	change("update sluice_migration set applied_at = (select started from sluice_holder) - 1")
	change("update sluice_migration set applied_at = (select started from sluice_holder) + 1" + newest)
	if got := said("old"); got != "" {
		t.Errorf("after a step that its program works with it is told that %s", got)
	}
	change("update sluice_migration set works_from = version" + newest)
	beat("new")
	if got := said("old"); !strings.Contains(got, "its program is too old for the schema") {
		t.Errorf("after a step that its program does not work with it is told that %s", got)
	}
	if got := said("new"); got != "" {
		t.Errorf("of a newer program it is told that %s", got)
	}
}
