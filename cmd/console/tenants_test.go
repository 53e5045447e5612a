package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

func TestTenantsAndTiersAreShownAndChanged(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.has("/tenants", "No job names a tenant", "There is no tier")
	for _, one := range []struct {
		act    string
		values url.Values
		path   string
		says   []string
	}{
		{"preset-tiers", url.Values{}, "/tenants", []string{"PRO", "concurrency 5 in every queue"}},
		{"set-tier", url.Values{"tier": {"PRO"}, "rate": {"10/s"}, "queue": {"mail"}}, "/tenants", []string{"rate 10/s in mail"}},
		{"add-tier", url.Values{"name": {"GOLD"}}, "/tenants", []string{`id="tier-GOLD"`, "no limits"}},
		{"delete-tier", url.Values{"tier": {"GOLD"}}, "/tenants", []string{`-id="tier-GOLD"`}},
		{"set-tenant-tier", url.Values{"tenant": {"acme"}, "tier_name": {"PRO"}}, "/tenants", []string{`href="/tenants/acme"`, "of 5 in each queue"}},
		{"set-tenant", url.Values{"tenant": {"acme"}, "concurrency": {"9"}, "weight": {"3"}, "for": {"2h"}}, "/tenants/acme", []string{"concurrency 9, weight 3 in every queue until", "of 9 in each queue"}},
		{"set-tenant", url.Values{"tenant": {"acme"}, "concurrency": {"2"}, "queue": {"reports"}}, "/tenants", []string{"in reports: concurrency 2", "in mail: rate 10/s"}},
		{"pause-tenant", url.Values{"tenant": {"acme"}, "reason": {"a bug of theirs"}}, "/tenants/acme", []string{"paused", "Resume", "a bug of theirs"}},
		{"resume-tenant", url.Values{"tenant": {"acme"}}, "/tenants/acme", []string{"Pause"}},
		{"pause-tenant", url.Values{"tenant": {"acme"}, "queue": {"mail"}}, "/tenants", []string{`in <a href="/queues/mail">mail</a> <button`, "state-paused", "-state-open"}},
		{"resume-tenant", url.Values{"tenant": {"acme"}, "queue": {"mail"}}, "/tenants/acme", []string{"-state-paused", "state-open"}},
		{"delete-tenant", url.Values{"tenant": {"acme"}}, "/tenants", []string{"-href=\"/tenants/acme\""}},
	} {
		if answer, status := s.do(one.act, one.values, nil); status != http.StatusNoContent {
			t.Fatalf("%s: got %d %s, want 204", one.act, status, answer)
		}
		s.has(one.path, one.says...)
	}
}

func TestATenantShowsWhoHasItsSlots(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	for range 40 {
		s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	}
	s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex"}})
	claimed, err := s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 35, Holder: "host:1:a", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 35 {
		t.Fatalf("claimed %d jobs (%v)", len(claimed.Jobs), err)
	}
	s.counted()
	looks := stat.Stat{Queue: "mail", Tenant: "acme", At: time.Now().UTC().Truncate(stat.Fine), Every: stat.Fine, Counts: stat.Counts{Claimed: 1}, Level: &stat.Level{Full: 7}}
	beside := looks // the same minutes in another queue
	beside.Queue, beside.Level = "reports", &stat.Level{Full: 5}
	if err := stat.Given(s.store).AddStats(t.Context(), "upkeep", []stat.Stat{looks, beside}); err != nil {
		t.Fatal(err)
	}
	s.has("/tenants", `id="tenant-acme"`, `id="tenant-globex"`, "noisy", `title="in this hour and the one before">at its limit for 7m00s<`)
	s.has("/tenants/acme", "host:1:a", `href="/jobs/`, "sluice tokens create NAME --role viewer --tenant acme<", "noisy", "5 due", "about 7m00s in the last 24 h", `disabled="true" title="the role viewer may not do this">Pause`)
	s.has("/tenants/a%2Fb%231%3F", `hx-sse:connect="/tenants/a/b%231%3F?live=1"`) // a browser would cut the address off at a # or ?
	s.has("/tenants/globex", "None of its jobs is in flight", "-noisy")
	open(t, access.RoleViewer, console.Options{}).has("/tenants/nobody%3A1", "None of its jobs is in flight", "<dt>At its concurrency</dt><dd>not known<")
}

func TestASlotOfATenantLinksToTheRunAtItsEngine(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{RunPage: "https://engine.example/runs/{ref}"})
	id := s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	s.settle(sluice.Settlement{ID: id, Token: s.claim("mail")[0].Token, Event: sluice.EventDispatch, Ref: "order-42"})
	s.has("/tenants/acme", `<a href="https://engine.example/runs/order-42">order-42</a>`)
}

func TestTenantsShareTheSlotsByTheirWeight(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	s.set("mail", "", func(q *sluice.Settings) { q.Fair = true })
	for tenant, values := range map[string]url.Values{"acme": {"concurrency": {"9"}}, "globex": {"weight": {"3"}}, "hooli": {"weight": {"4"}}} {
		values.Set("tenant", tenant)
		if answer, status := s.do("set-tenant", values, nil); status != http.StatusNoContent {
			t.Fatalf("set-tenant: got %d %s, want 204", status, answer)
		}
	}
	if answer, status := s.do("pause-tenant", url.Values{"tenant": {"hooli"}}, nil); status != http.StatusNoContent {
		t.Fatalf("pause-tenant: got %d %s, want 204", status, answer)
	}
	for range 8 {
		s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	}
	s.claim("mail")
	for _, tenant := range []string{"globex", "hooli"} {
		s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
	}
	s.counted()
	one := stat.Stat{Queue: "mail", Tenant: "acme", At: time.Now().UTC().Truncate(stat.Fine), Every: stat.Fine, Counts: stat.Counts{Claimed: 1}}
	one.Wait.Add(3 * time.Minute)
	if err := stat.Given(s.store).AddStats(t.Context(), "test", []stat.Stat{one}); err != nil {
		t.Fatal(err)
	}
	// The paused tenant has no claim on slots.
	s.has("/tenants", "acme has 100.0 % of the jobs in flight; by its weight among those who want slots it would have 25.0 %.", draw.Duration(one.Wait.Quantile(0.95)), "none started", "<title>globex by weight 75.0 %</title>", "-hooli by weight")
	s.has("/tenants?csv=shares", "tenant,has (%),by weight (%)\nacme,100,25\nglobex,0,75\n")
	page := s.has("/tenants?sort=wait", `aria-current="true">longest wait first`)
	if first, second := strings.Index(page, `id="tenant-globex"`), strings.Index(page, `id="tenant-acme"`); first < 0 || first > second {
		t.Errorf("globex, of which no job started, is at %d and acme at %d, want globex first", first, second)
	}
}
