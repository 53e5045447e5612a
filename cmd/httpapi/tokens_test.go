package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestNobodyGetsMoreRightsByATokenMadeOverHTTP lets callers of all kinds try to make, take over and revoke tokens. Only
// an admin without bounds may do so, since no token has more rights.
func TestNobodyGetsMoreRightsByATokenMadeOverHTTP(t *testing.T) {
	t.Parallel()
	store, ctx, by := memory.New(memory.Options{}), t.Context(), sluice.Act{By: "test"}
	server := httptest.NewServer(httpapi.New(store, httpapi.Options{}))
	t.Cleanup(server.Close)
	secrets := make(map[string]string)
	for name, token := range map[string]access.Token{
		"boss": {Role: access.RoleAdmin}, "victim": {Role: access.RoleAdmin}, "of-queues": {Role: access.RoleAdmin, Bounds: access.Bounds{Queues: []string{"*"}}},
		"of-tenants": {Role: access.RoleAdmin, Bounds: access.Bounds{Tenants: []string{"acme"}}}, "operator": {Role: access.RoleOperator}, "worker": {Role: access.RoleWorker},
		"producer": {Role: access.RoleProducer}, "reader": {Role: access.RoleReader}, "viewer": {Role: access.RoleViewer},
		"expired": {Role: access.RoleAdmin, ExpiresAt: time.Now().Add(-time.Second)}, "rotated": {Role: access.RoleAdmin}, "revoked": {Role: access.RoleAdmin},
	} {
		token.Name = name
		_, secret, err := access.Create(ctx, store, token, by)
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	if _, _, err := access.Rotate(ctx, store, "rotated", 0, by); err != nil {
		t.Fatal(err)
	}
	if err := access.Revoke(ctx, store, "revoked", by); err != nil {
		t.Fatal(err)
	}
	acts := func(name string, own sluice.Store) map[string]error {
		_, _, created := access.Create(ctx, own, access.Token{Name: "new-" + name, Role: access.RoleAdmin}, by)
		_, _, equal := access.Create(ctx, own, access.Token{Name: "equal-" + name, Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"*"}, Tenants: []string{"acme"}}}, by)
		_, _, taken := access.Rotate(ctx, own, "victim", time.Hour, by)
		_, _, renewed := access.Rotate(ctx, own, name, time.Hour, by)
		_, listed := access.Tokens(ctx, own, "", 0)
		chain, err := audit.Of(own)
		if err != nil {
			t.Fatal(err)
		}
		_, kept := audit.Keep(ctx, chain, map[audit.Level]time.Duration{audit.Notable: time.Hour}, by)
		return map[string]error{"create an admin": created, "create a viewer": equal, "take another over": taken, "renew its own": renewed, "revoke another": access.Revoke(ctx, own, "victim", by), "list": listed, "keep the audit": kept}
	}
	before := must(access.Tokens(ctx, store, "", 0))
	for name, secret := range secrets {
		if name == "boss" || name == "victim" {
			continue
		}
		own, err := remote.Open(ctx, server.URL, remote.Options{Token: secret})
		if name == "expired" || name == "rotated" || name == "revoked" {
			if !errors.Is(err, remote.ErrRefused) {
				t.Errorf("%s: got %v, want ErrRefused", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for act, err := range acts(name, own) {
			if !errors.Is(err, remote.ErrRefused) {
				t.Errorf("%s may %s: %v", name, act, err)
			}
		}
		_ = own.Close()
	}
	after := must(access.Tokens(ctx, store, "", 0))
	for i := range before {
		if after[i].Name != before[i].Name || after[i].Version != before[i].Version {
			t.Errorf("%+v was %+v", after[i], before[i])
		}
	}
	own := must(remote.Open(ctx, server.URL, remote.Options{Token: secrets["boss"]}))
	for act, err := range acts("boss", own) {
		if err != nil {
			t.Errorf("boss may not %s: %v", act, err)
		}
	}
	told := must(store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectToken, Name: "new-boss", Limit: 10}))
	if len(told) != 1 || told[0].Actor != "test by token boss" {
		t.Errorf("the audit has %+v, want 1 entry by token boss", told)
	}
	_ = own.Close()
}

// lying opens a remote store at a server that changes its answers to one path.
func lying(t *testing.T, api http.Handler, path string, was *regexp.Regexp, is string) sluice.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		text := answer.Body.Bytes()
		if r.URL.Path == httpapi.Root+path {
			text = was.ReplaceAll(text, []byte(is))
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return must(remote.Open(t.Context(), server.URL, remote.Options{}))
}

// TestAServerCannotJustSayThatTheAuditIsWhole has servers that falsify their answers about the audit chain.
func TestAServerCannotJustSayThatTheAuditIsWhole(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	chain := must(audit.Of(store))
	var told audit.Head
	for range 2 {
		entry := sluice.AuditEntry{Object: audit.ObjectQueue, Name: "mail", Event: audit.EventChange, Actor: "ada"}
		if err := store.AppendAudit(t.Context(), []sluice.AuditEntry{entry, entry}); err != nil {
			t.Fatal(err)
		}
		told = must(audit.SealSettled(t.Context(), chain, audit.SealOptions{})).Last.Head()
	}
	api := httpapi.New(store, httpapi.Options{NoLogin: true})
	for name, c := range map[string]struct {
		path, was, is string
		fault         audit.FaultKind
		seq           int64
	}{
		"the truth":         {"", "", "", "", 0},
		"another entry":     {"/audit/digests", `("seq":3,.*?"sum":")....`, "${1}0000", audit.Changed, 3},
		"an entry less":     {"/audit/digests", `\{"seq":2,[^}]*\},`, "", audit.Removed, 2},
		"another seal":      {"/audit/seals", `("no":2,.*?"upto":)4`, "${1}3", audit.Broken, 3},
		"a seal less":       {"/audit/seals", `,\{"no":2,.*\}\]`, "]", audit.Cut, 3},
		"no seal":           {"/audit/seals", `\[.*\]`, "[]", audit.Cut, 1},
		"entries out order": {"/audit/digests", `"seq":2`, `"seq":1`, "error", 0},
		"an unknown level":  {"/audit/digests", `"notable"`, `"none"`, "error", 0},
	} {
		own := lying(t, api, c.path, regexp.MustCompile(c.was), c.is)
		report, err := audit.Verify(t.Context(), must(audit.Of(own)), audit.VerifyOptions{Heads: []audit.Head{told}})
		switch {
		case c.fault == "error":
			if !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("%s: got %+v, %v, want ErrInvalid", name, report, err)
			}
		case c.fault == "":
			if err != nil || report.Fault != nil || report.Entries != 4 {
				t.Errorf("%s: got %+v, %v, want 4 entries without a fault", name, report, err)
			}
		case err != nil || report.Fault == nil || report.Fault.Kind != c.fault || report.Fault.Seq != c.seq:
			t.Errorf("%s: %+v, %+v, %v", name, report, report.Fault, err)
		}
		_ = own.Close()
	}
}
