package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/console"
)

func TestTheAuditSaysWhatWasDoneInTheConsole(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	values := url.Values{"ids": {id.String()}, "reason": {"not needed"}}
	if text, status := s.do("cancel-jobs", values, http.Header{"Sluice-By": {"ada@office"}}); status != http.StatusNoContent {
		t.Fatalf("got %d %s", status, text)
	}
	entries, err := s.client.Audit(t.Context(), sluice.AuditFilter{JobID: id, Actor: "ann"})
	if err != nil || len(entries) != 1 || entries[0].Actor != "ann in the console" {
		t.Errorf("the audit has %+v, %v, want 1 entry by ann in the console", entries, err)
	}
}

func TestTheAuditIsNarrowedByActorEventAndTime(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	one, two := s.enqueue(sluice.NewJob{Queue: "mail"}), s.enqueue(sluice.NewJob{Queue: "mail"})
	for id, who := range map[sluice.ID]string{one: "ada@office", two: "grace"} {
		if err := s.client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: who}); err != nil {
			t.Fatal(err)
		}
	}
	s.set("mail", "", func(q *sluice.Settings) { q.MaxAttempts = 3 })
	s.has("/audit", one.String(), two.String(), `href="/audit?actor=ada%40office"`, `href="/audit?event=cancel"`)
	s.has("/audit?actor=ada%40office", one.String(), "-"+two.String(), "sluice audit --actor ada@office", "actor=ada%40office")
	s.has("/audit?event=cancel", one.String(), two.String(), "-actor=bob")
	s.has("/audit?event=cancel&from=1h", one.String(), "sluice audit --event cancel --since 20", "from=20")
	s.has("/audit?to=2020-01-01+16:00", "No entry matches", "sluice audit --until 2020-01-01T16:00:00Z", "-"+one.String())
	if _, status := s.page("/audit?from=yesterday"); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong time: %d, want 422", status)
	}
}

func TestTheAuditCountsTheJobsOfADispatchCycle(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.set("orders", "", func(q *sluice.Settings) { q.Engine = "local" })
	entry := sluice.AuditEntry{Object: audit.ObjectQueue, Name: "orders", Event: audit.EventBatch, Actor: "dispatcher", After: json.RawMessage(`{"claimed":3,"dispatched":2,"held":1,"buried":0,"released":0,"took":41175352}`)}
	if err := s.store.AppendAudit(t.Context(), slices.Repeat([]sluice.AuditEntry{entry}, 300)); err != nil {
		t.Fatal(err)
	}
	s.has("/audit?event=dispatch+batch", `claimed</span> <ins>3<`, `held</span> <ins>1<`, `took</span> <ins>41`, "-buried", "-ageing", "-41175352")
	s.has("/queues/orders", "<ins>local</ins>") // the history of its settings
}
