package console_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
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
	s.has("/tenants", `id="tenant-acme"`, `id="tenant-globex"`, "noisy")
	s.has("/tenants/acme", "host:1:a", `href="/jobs/`, "noisy", "5 due", `disabled title="the role viewer may not do this">Pause`)
	s.has("/tenants/globex", "None of its jobs is in flight", "-noisy")
	s.has("/tenants/nobody%3A1", "None of its jobs is in flight")
}
