package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// rolesByRoute lists the roles that may send each request. A new route fails the test until somebody adds it here.
var rolesByRoute = map[string]string{
	"enqueue": producers, "await-job": "reader producer worker operator admin",
	"get-job": everybody, "list-attempts": everybody, "get-openapi": everybody, "whoami": everybody, "list-fields": everybody,
	"list-jobs": lookers, "explain-job": lookers, "list-operations": lookers, "get-operation": lookers, "list-queues": everybody, "get-queue": lookers,
	"get-time": everybody, "read-ends": "reader producer worker operator admin", "get-depth": "viewer reader worker operator admin", "admit-queues": producers, "save-queue": operators,
	"next-due": workers, "pause-shared": workers, "paused-tenants": workers,
	"list-stats": lookers, "list-waves": lookers, "list-settings-changes": lookers, "list-audit": lookers, "list-holds": lookers, "list-dead-groups": lookers, "list-dead-notes": lookers, "change-dead-note": operators, "save-dead-note": operators, "get-stats": lookers,
	"get-forecast": lookers, "list-scenarios": lookers, "simulate": operators, "list-forecasts": lookers, "get-series": lookers, "list-series": lookers, "list-use": lookers, "get-tenant": lookers, "get-health": lookers, "list-statements": operators, "maintain": operators, "scrub-text": lookers, "list-holders": lookers, "remaining-work": lookers,
	"edit-job": operators, "cancel-jobs": operators, "retry-jobs": operators, "run-now-jobs": operators, "hold-jobs": operators, "release-jobs": operators,
	"delete-jobs": operators, "terminate-jobs": operators, "requeue-jobs": operators, "resolve-jobs": operators, "reschedule-jobs": operators,
	"start-operation": operators, "save-operation": operators, "save-batch-pause": operators, "pause-operation": operators, "resume-operation": operators, "stop-operation": operators, "pace-operation": operators,
	"delete-queue": operators, "change-settings": operators, "undo-settings": operators, "cancel-scheduled-change": operators, "pause-queue": operators,
	"resume-queue": operators, "instruct-holders": operators, "save-instruction": operators, "list-held-jobs": lookers,
	"list-tenants": lookers, "list-tiers": lookers, "list-limits": lookers, "get-limit": lookers, "get-admission": lookers, "list-flows": lookers,
	"list-batches": lookers, "list-alerts": lookers, "list-alert-history": lookers, "test-alerts": lookers, "test-receiver": operators, "list-rules": lookers, "get-alert-book": lookers,
	"list-schedules": lookers, "get-schedule": lookers, "get-audit-head": lookers, "verify-audit": lookers, "list-audit-seals": readers, "list-audit-digests": readers, "get-audit-batch": readers, "get-audit-retention": lookers,
	"stream": "viewer reader worker operator admin", "ask-engine": lookers, "list-orphan-runs": lookers, "get-metrics": lookers,
	"get-flow": everybody, "get-batch": everybody, "start-flow": producers, "open-batch": producers, "close-batch": producers,
	"set-tenant": operators, "save-tenant": operators, "save-tier": operators, "save-tenant-limits": operators, "list-tenant-limits": lookers, "read-effective-limits": lookers, "delete-tenant": operators, "pause-tenant": operators, "resume-tenant": operators, "add-tier": operators, "preset-tiers": operators,
	"set-tier": operators, "delete-tier": operators, "set-limit": operators, "save-limit": operators, "save-limit-key": operators, "close-limit": operators, "open-limit": operators, "undo-limit": operators, "delete-limit": operators,
	"cancel-batch": operators, "pause-batch": operators, "resume-batch": operators, "retry-batch": operators, "set-rule": operators, "save-rule": operators, "enable-rule": operators,
	"disable-rule": operators, "reset-rule": operators, "start-silence": operators, "stop-silence": operators, "set-schedule": operators, "save-schedule": operators, "fire-schedule": operators,
	"pause-schedule": operators, "resume-schedule": operators, "lift-schedule": operators, "undo-schedule": operators, "trigger-schedule": operators,
	"backfill-schedule": operators, "delete-schedule": operators, "check-engine": operators, "reconcile-engine": operators,
	"claim": workers, "renew": workers, "settle": workers, "save-checkpoint": workers, "report-progress": workers, "heartbeat": workers,
	"change-admission": "admin", "save-admission": "admin", "change-audit-retention": "admin",
	"list-tokens": "admin", "create-token": "admin", "rotate-token": "admin", "revoke-token": "admin",
}

const (
	everybody = "viewer reader producer worker operator admin"
	lookers   = "viewer reader operator admin"
	readers   = "reader operator admin"
	operators = "operator admin"
	workers   = "worker admin"
	producers = "producer worker operator admin"
)

// pathValues replaces the parameters in paths.
var pathValues = strings.NewReplacer("{id}", "01a1fb72-1dea-7abc-8fc6-99e4817522bb", "{queue}", "mail", "{name}", "x", "{change}", "1", "{tenant}", "acme", "{tier}", "PRO", "{limit}", "bank", "{schedule}", "nightly", "{rule}", "dead-letters", "{no}", "1", "{level}", "full", "{task}", "retention")

// TestEachRouteIsForItsRolesAlone sends every request with a token of every role, with an unknown token, and with none.
func TestEachRouteIsForItsRolesAlone(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	secrets := map[string]string{"": "", "unknown": "sluice_" + strings.Repeat("x", 43)}
	for _, role := range access.Roles() {
		_, secret, err := access.Create(t.Context(), store, access.Token{Name: string(role), Role: role}, sluice.Act{By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		secrets[string(role)] = secret
	}
	_, secret, err := access.Create(t.Context(), store, access.Token{Name: "bounded", Role: access.RoleAdmin, Bounds: access.Bounds{Queues: []string{"other"}}}, sluice.Act{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	secrets["bounded"] = secret
	var api *httpapi.API
	for i, route := range httpapi.Routes() {
		if i%50 == 0 { // an API looks up at most 100 unknown tokens a second
			api = httpapi.New(store, httpapi.Options{})
		}
		allowed, decided := rolesByRoute[route.Name]
		if !decided {
			t.Errorf("%s %s: say in rolesByRoute who may send %s", route.Method, route.Path, route.Name)
		}
		for role, secret := range secrets {
			status, code := sendAs(api, route, secret)
			want := strings.Contains(" "+allowed+" ", " "+role+" ")
			switch {
			case role == "" || role == "unknown":
				if status != http.StatusUnauthorized {
					t.Errorf("%s with the token %q: %d, want 401", route.Name, role, status)
				}
			case role == "bounded":
				if fullStore := status < 300 && strings.Contains(unboundedOnly, " "+route.Name+" "); fullStore || strings.Contains(route.Path, "{queue}") && status != http.StatusNotFound {
					t.Errorf("%s with a bounded token: %d", route.Name, status)
				}
			case (code != "forbidden") != want:
				t.Errorf("%s as %s: %d %s, want it allowed: %t", route.Name, role, status, code, want)
			}
		}
	}
}

// unboundedOnly names the routes about the whole store, which callers with bounds may not use.
const unboundedOnly = " get-alert-book list-tenant-limits list-stats list-waves list-audit-seals list-audit-digests get-audit-batch list-tokens create-token rotate-token revoke-token list-operations list-holders get-health list-audit list-dead-groups list-dead-notes instruct-holders " +
	"list-tenants list-tiers list-limits get-admission list-flows list-batches open-batch list-alerts test-alerts list-rules get-audit-retention get-metrics "

// sendAs sends an empty request to a route with a token.
func sendAs(api http.Handler, route httpapi.Route, secret string) (status int, code string) {
	body := ""
	if route.Method != "GET" && route.Method != "DELETE" {
		body = "{}"
	}
	r := httptest.NewRequest(route.Method, httpapi.Root+pathValues.Replace(route.Path), strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	var problem httpapi.Problem
	if w.Code >= 300 && json.Unmarshal(w.Body.Bytes(), &problem) != nil {
		return w.Code, "no problem: " + w.Body.String()
	}
	return w.Code, problem.Code
}

func TestTokensAreMadeAndEndOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	type made struct{ Secret string }
	first := get[made](s, "POST", "/tokens", `{"name":"shop","role":"producer","queues":["mail.*"],"reason":"the shop"}`).Secret
	if list := s.ask("GET", "/tokens", ""); !strings.Contains(list.text, `"name":"shop"`) || strings.Contains(list.text, first) || strings.Contains(list.text, "hash") {
		t.Errorf("the list must show the token shop without its secret and hash: %s", list.text)
	}
	gate := access.NewGate(s.store)
	if caller, err := gate.Caller(t.Context(), first); err != nil || caller.Name != "token shop" || !caller.Queue("mail.a") || caller.Queue("sms") {
		t.Errorf("the caller is %+v, %v, want token shop with the queue mail.a", caller, err)
	}
	second := get[made](s, "POST", "/tokens/shop/rotate", `{"overlap":"1h"}`).Secret
	for _, secret := range []string{first, second} {
		if _, err := access.NewGate(s.store).Caller(t.Context(), secret); err != nil {
			t.Error(err)
		}
	}
	get[map[string]any](s, "DELETE", "/tokens/shop?reason=leaked", "")
	if _, err := access.NewGate(s.store).Caller(t.Context(), second); err == nil {
		t.Error("a revoked token works")
	}
	s.problem(s.ask("DELETE", "/tokens/shop", ""), 404, "not_found")
	s.problem(s.ask("POST", "/tokens/shop/rotate", `{"overlap":"x"}`), 422, "invalid")
	s.problem(s.ask("POST", "/tokens", `{"name":"x","role":"king"}`), 422, "invalid")
}
