package storetest

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

// TooOld looks at holders as a newer program does once it has migrated the database, while one ran that knows the steps before
// alone. Tables is how the names of the store's tables begin, moment a short time in its SQL.
func TooOld(t *testing.T, store sluice.Store, tables, moment string, change func(statement string) error) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	said := func(id string) (out string) {
		t.Helper()
		holders, err := presence.Holders(t.Context(), store)
		must(err)
		for _, h := range holders {
			if h.ID == id {
				out = h.Summary()
			}
		}
		return out
	}
	beat := func(id string) {
		t.Helper()
		_, err := presence.Given(store).Heartbeat(t.Context(), presence.Holder{ID: id, Role: presence.RoleWorker, Queues: []string{"mail"}})
		must(err)
	}
	// The old program knew a made-up step 0 alone.
	must(change("insert into " + tables + "migration (version, name, checksum, works_from, applied_at) select 0, 'of before', 'x', 0, applied_at from " + tables + "migration where version = 1"))
	applied := "update " + tables + "migration set applied_at = (select started from " + tables + "holder) "
	newest := " where version = (select max(version) from " + tables + "migration)"
	beat("old")
	must(change("update " + tables + "migration set works_from = 0" + newest))
	// The database may have been made while another test had set the clock.
	must(change(applied + "- " + moment))
	must(change(applied + "+ " + moment + newest))
	if got := said("old"); got != "" {
		t.Errorf("after a step that its program works with it is told that %s", got)
	}
	must(change("update " + tables + "migration set works_from = version" + newest))
	beat("new")
	if got := said("old"); !strings.Contains(got, "its program is too old for the schema") {
		t.Errorf("after a step that its program does not work with it is told that %s", got)
	}
	if got := said("new"); got != "" {
		t.Errorf("of a newer program it is told that %s", got)
	}
}
