package httpapi_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// repeated is a request that changes something. Gone says that a later one deletes its thing.
type repeated struct {
	method, path, body string
	gone               bool
}

// jobActs are the acts on jobs, of which the first is dead and the others wait.
func jobActs(dead, waits, other sluice.ID) []repeated {
	ids := func(id sluice.ID, more string) string {
		return `{"ids":["` + id.String() + `"],"reason":"x"` + more + `}`
	}
	return []repeated{
		{"POST", "/jobs/requeue", ids(dead, ""), false},
		{"POST", "/jobs/requeue", ids(dead, `,"undo":true`), false},
		{"POST", "/jobs/delete", ids(dead, ""), false},
		{"POST", "/jobs/hold", ids(waits, ""), false},
		{"POST", "/jobs/release", ids(waits, ""), false},
		{"POST", "/jobs/reschedule", ids(waits, `,"delay":"1h"`), false},
		{"POST", "/jobs/reschedule", ids(waits, `,"undo":true`), false},
		{"PATCH", "/jobs/" + waits.String(), `{"priority":3,"reason":"x"}`, false},
		{"POST", "/jobs/run-now", ids(waits, ""), false},
		{"POST", "/jobs/cancel", ids(other, ""), false},
		{"POST", "/jobs/retry", ids(other, ""), false},
		{"POST", "/jobs/cancel", ids(other, ""), false},
	}
}

// queueActs are the acts on queues.
func queueActs() []repeated {
	return []repeated{
		{"POST", "/queues/admit", `{"queues":["fresh"],"reason":"x"}`, true},
		{"DELETE", "/queues/fresh?reason=x", "", false},
		{"PUT", "/queues/plain", `{"settings":{"rate":"1/s"},"reason":"x"}`, false},
		{"PATCH", "/queues/plain/settings", `{"set":{"rate":"2/s"},"version":1}`, false},
		{"PATCH", "/queues/plain/settings", `{"set":{"rate":"3/s"},"window":{"from":"01:00","to":"02:00","zone":"UTC"}}`, false},
		{"DELETE", "/queues/plain/scheduled/3", "", false},
		{"PATCH", "/queues/plain/settings", `{"set":{"rate":"4/s"},"for":"1h"}`, false},
		{"POST", "/queues/plain/settings/undo", `{}`, false},
		{"POST", "/queues/plain/pause", `{"reason":"x"}`, false},
		{"POST", "/queues/plain/resume", `{}`, false},
		{"PATCH", "/queues/none/settings", `{"set":{"rate":"4/s"}}`, true},
		{"DELETE", "/queues/none?reason=x", "", false},
		{"PATCH", "/admission", `{"max_queues":900,"reason":"x"}`, false},
		{"PUT", "/admission", `{"version":1,"max_queues":800,"reason":"x"}`, false},
	}
}

// tenantActs are the acts on tenants, tiers and limits.
func tenantActs() []repeated {
	return []repeated{
		{"POST", "/tiers", `{"name":"GOLD"}`, true},
		{"POST", "/tiers/preset", `{}`, false},
		{"PATCH", "/tiers/GOLD", `{"set":{"rate":"1/s"}}`, true},
		{"PUT", "/tiers/BRASS", `{}`, false},
		{"PATCH", "/tenants/acme", `{"tier":"GOLD","set":{"rate":"2/s"}}`, true},
		{"DELETE", "/tiers/GOLD", "", false},
		{"PUT", "/tenants/acme", `{"version":2,"tier":"PRO"}`, true},
		{"PUT", "/tenant-limits", `{"tenant":"globex","rate":"1/s"}`, false},
		{"POST", "/tenants/acme/pause", `{"for":"1h"}`, true},
		{"POST", "/tenants/acme/resume", `{}`, true},
		{"DELETE", "/tenants/acme", "", false},
		{"PUT", "/limits/spare", `{"name":"spare","concurrency":0,"rate":"5/s","burst":0,"per_key":false,"by_cost":false,"closed":false}`, true},
		{"PATCH", "/limits/spare", `{"set":{"per":"key"}}`, true},
		{"POST", "/limits/spare/close?key=ada", `{"for":"1h","reason":"x"}`, true},
		{"PUT", "/limits/spare/key", `{"key":"ada"}`, true},
		{"POST", "/limits/spare/open?key=ada", `{}`, true},
		{"POST", "/limits/spare/undo", `{}`, true},
		{"POST", "/limits/spare/close", `{"for":"1h","reason":"x"}`, true},
		{"POST", "/limits/spare/open", `{}`, true},
		{"DELETE", "/limits/spare", "", false},
	}
}

// groupActs are the acts on operations and batches.
func groupActs(operation, batch sluice.ID) []repeated {
	of, in := "/operations/"+operation.String(), "/batches/"+batch.String()
	return []repeated{
		{"PUT", of, `{"operation":{"kind":"cancel","query":{"queue":"none"}},"reason":"x"}`, false},
		{"POST", of + "/pause", `{"reason":"x"}`, false},
		{"POST", of + "/pace", `{"rate":"5/s"}`, false},
		{"POST", of + "/resume", `{}`, false},
		{"PUT", of, `{"operation":{"version":4,"state":"paused","rate":"5/s"}}`, false},
		{"POST", of + "/stop", `{}`, false},
		{"POST", "/operations", `{"kind":"cancel","where":"queue:none","reason":"x"}`, false},
		{"POST", "/batches", `{"id":"` + batch.String() + `","name":"import"}`, false},
		{"POST", in + "/pause", `{"reason":"x"}`, false},
		{"POST", in + "/resume", `{}`, false},
		{"PUT", in + "/pause", `{"paused":"x"}`, false},
		{"PUT", in + "/pause", `{}`, false},
		{"POST", in + "/close", `{}`, false},
		{"POST", in + "/retry", `{"reason":"x"}`, false},
		{"POST", in + "/cancel", `{"reason":"x"}`, false},
		{"POST", "/flows", `{"id":"` + sluice.NewID().String() + `","name":"f","nodes":[{"name":"a","queue":"mail"}]}`, false},
	}
}

// ruleActs are the acts on schedules, alerts, processes and the audit.
func ruleActs(silence sluice.ID) []repeated {
	return []repeated{
		{"PATCH", "/schedules/daily", `{"definition":{"queue":"mail","cron":"@daily"}}`, true},
		{"PATCH", "/schedules/own", `{"definition":{"queue":"mail","cron":"@weekly"}}`, false},
		{"POST", "/schedules/daily/pause", `{"reason":"x"}`, true},
		{"POST", "/schedules/daily/resume", `{}`, true},
		{"POST", "/schedules/daily/undo", `{}`, true},
		{"POST", "/schedules/daily/trigger", `{}`, true},
		{"POST", "/schedules/daily/fire", `{"at":["2026-01-01T00:00:00Z"]}`, true},
		{"POST", "/schedules/daily/backfill", `{"from":"2026-01-02T00:00:00Z","to":"2026-01-03T00:00:00Z"}`, true},
		{"DELETE", "/schedules/daily", "", false},
		{"PATCH", "/alerts/rules/many", `{"set":{"metric":"ready","op":">","threshold":"0","severity":"note"}}`, true},
		{"POST", "/alerts/rules/many/disable", `{}`, true},
		{"POST", "/alerts/rules/many/enable", `{}`, true},
		{"PUT", "/alerts/rules/own", `{"rule":{"name":"own","disabled":false,"metric":"ready","op":">","threshold":1,"for":"1m","severity":"note"}}`, false},
		{"POST", "/alerts/silences", `{"id":"` + silence.String() + `","rule":"many","for":"2h","reason":"x"}`, true},
		{"DELETE", "/alerts/silences/" + silence.String(), "", false},
		{"DELETE", "/alerts/rules/many", "", false},
		{"PATCH", "/dead/notes/01234567", `{"text":"x"}`, false},
		{"PUT", "/dead/notes/01234567", `{"version":1,"text":"y"}`, false},
		{"PATCH", "/audit/keep", `{"full":"90d","reason":"x"}`, false},
		{"POST", "/holders/instructions", `{"target":{"version":"v1"},"wanted":"quiesce","reason":"x"}`, false},
		{"PUT", "/holders/instructions", `{"instruction":{"target":{"version":"v2"},"wanted":"stop"},"reason":"x"}`, false},
		{"POST", "/tokens", `{"name":"shop","role":"viewer"}`, true},
		{"POST", "/tokens/shop/rotate", `{"overlap":"1h"}`, true},
		{"DELETE", "/tokens/shop", "", false},
	}
}

// TestEachActThatIsSentAgainAnswersAsAtFirst sends each request that changes something again to another server, because its answer was
// lost: at once, and after all later ones.
func TestEachActThatIsSentAgainAnswersAsAtFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	one, other := serveFile(t, path), serveFile(t, path)
	dead, waits, third := one.enqueue("mail", "acme"), one.enqueue("mail", ""), one.enqueue("mail", "")
	if h := one.claimOne(ofMail); h.ID != dead.String() || one.settle(h, `"outcome":"fail","permanent":true,"error":"no such user"`) != "" {
		t.Fatalf("%+v is not buried", h)
	}
	all := slices.Concat(jobActs(dead, waits, third), queueActs(), tenantActs(), groupActs(sluice.NewID(), sluice.NewID()), ruleActs(sluice.NewID()))
	keys := make([]string, len(all))
	for i, r := range all {
		keys[i] = sluice.NewID().String()
		first := one.ask(r.method, r.path, r.body, "Idempotency-Key", keys[i])
		again := other.ask(r.method, r.path, r.body, "Idempotency-Key", keys[i])
		once := strings.HasPrefix(r.path, "/tokens") && r.method == http.MethodPost // a secret is shown once
		if first.status >= 300 || !once && (again.status != first.status || timeless(t, again.text) != timeless(t, first.text)) {
			t.Errorf("%s %s %s: %d %s, and again: %d %s", r.method, r.path, r.body, first.status, first.text, again.status, again.text)
		}
	}
	for i, r := range all {
		late := other.ask(r.method, r.path, r.body, "Idempotency-Key", keys[i])
		if late.status >= 300 && !r.gone || late.status >= 500 || strings.HasPrefix(r.path, "/jobs/") && r.method == http.MethodPost && !strings.Contains(late.text, `"failed":[]`) {
			t.Errorf("%s %s %s later: %d %s", r.method, r.path, r.body, late.status, late.text)
		}
	}
	checkAllAreRepeated(t, all)
}

// checkAllAreRepeated finds routes that change something and are not among the repeated ones.
func checkAllAreRepeated(t *testing.T, all []repeated) {
	t.Helper()
	mux := http.NewServeMux()
	seen := make(map[string]bool)
	routes := httpapi.Routes()
	for _, route := range routes {
		mux.HandleFunc(route.Method+" "+route.Path, func(http.ResponseWriter, *http.Request) {})
	}
	for _, r := range all {
		request, err := http.NewRequestWithContext(t.Context(), r.method, "http://localhost"+r.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(request)
		seen[pattern] = true
	}
	// These ask something, or act on what only an engine or a program has.
	others := []string{
		"terminate-jobs", "resolve-jobs", "maintain", "check-engine", "reconcile-engine", "test-receiver", "simulate", "test-alerts", "verify-audit", "list-held-jobs",
		"remaining-work", "read-effective-limits", "save-schedule", "lift-schedule",
	}
	for _, route := range routes {
		if route.Method != http.MethodGet && route.Needs&(access.Operate|access.Administer) != 0 && !seen[route.Method+" "+route.Path] && !slices.Contains(others, route.Name) {
			t.Errorf("%s %s is not sent again", route.Method, route.Path)
		}
	}
}
