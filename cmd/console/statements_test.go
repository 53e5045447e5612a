package console_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheStoreSaysHowToKnowTheSlowestStatements(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	as := func(role access.Role) *site {
		return openOver(t, store, access.Caller{Name: "ann", Role: role}, console.Options{}, httpapi.Options{})
	}
	as(access.RoleOperator).has("/store", "PostgreSQL makes them by itself", `data-act="vacuum-store"`, `-data-act="checkpoint-store"`)
	as(access.RoleOperator).has("/store", "Slowest statements", "Not known: the extension pg_stat_statements is not there. To do:", "create extension pg_stat_statements")
	as(access.RoleViewer).has("/store", "The role viewer may not see statements.", "-create extension")
	open(t, access.RoleOperator, console.Options{}).has("/store", "-Slowest statements", "-vacuum-store")
	for act, want := range map[string]string{"vacuum": "removed", "checkpoint": "PostgreSQL writes checkpoints of the whole server by itself"} {
		if text, _ := as(access.RoleOperator).do(act+"-store", url.Values{"task": {act}, "reason": {"a test"}}, nil); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", act, text, want)
		}
	}
}

// TestTheStoreIsMaintained lets an operator do each task on SQLite. A viewer may do none.
func TestTheStoreIsMaintained(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := openOver(t, store, access.Caller{Name: "ann", Role: access.RoleOperator}, console.Options{}, httpapi.Options{})
	settings := sluice.DefaultSettings()
	settings.KeepCancelled = time.Millisecond
	if _, err := store.SaveQueue(t.Context(), sluice.Queue{Name: "mail", Settings: settings}, sluice.Act{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	if _, err := store.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.has("/store", `hx-get="/do/checkpoint-store?task=checkpoint"`, `hx-get="/do/vacuum-store?task=vacuum"`, `hx-get="/do/retention-store?task=retention"`)
	s.has("/do/retention-store?task=retention", "<strong>1 job</strong>", "queue mail, cancelled: 1 job", "sluice upkeep now retention", "/maintenance/retention", "Leave it")
	done := func(act string, values url.Values, want string) {
		t.Helper()
		if text, status := s.do(act, values, nil); status != 204 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", act, status, text, want)
		}
	}
	reason := []string{"the disk is full"}
	done("retention-store", url.Values{"task": {"retention"}, "counted": {"1"}, "counted_more": {"false"}, "reason": reason}, "1 job deleted")
	done("checkpoint-store", url.Values{"task": {"checkpoint"}, "reason": reason, "dry_run": {"true"}}, "The log has ")
	done("checkpoint-store", url.Values{"task": {"checkpoint"}, "reason": reason}, " smaller")
	done("vacuum-store", url.Values{"task": {"vacuum"}, "reason": reason}, "given back to the disk")
	if text, _ := s.do("vacuum-store", url.Values{"task": {"vacuum"}}, nil); !strings.Contains(text, "must be given") {
		t.Errorf("without a reason: %s, want that one is asked for", text)
	}
	entries, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectStore, Limit: 10})
	if err != nil || len(entries) != 3 || entries[0].Actor != "ann in the console" || entries[0].Reason != reason[0] {
		t.Errorf("the audit has %+v, %v, want 3 tasks by ann", entries, err)
	}
	viewer := openOver(t, store, access.Caller{Name: "vic", Role: access.RoleViewer}, console.Options{}, httpapi.Options{})
	viewer.has("/store", "the role viewer may not do this", `-hx-get="/do/vacuum-store`)
	if text, _ := viewer.do("vacuum-store", url.Values{"task": {"vacuum"}, "reason": reason}, nil); !strings.Contains(text, "the role viewer may not do this") {
		t.Errorf("a viewer vacuums: %s", text)
	}
}
