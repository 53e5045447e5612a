package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestAnActThatIsSentAgainToAnotherServerDoesNothing does each act, and lets another act undo it. Then a second server
// on the same store gets the first request again.
func TestAnActThatIsSentAgainToAnotherServerDoesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	one, other := serveFile(t, path), serveFile(t, path)
	job := one.enqueue("mail", "acme")
	one.ask(http.MethodPost, "/tiers", `{"name":"PRO"}`)
	cancelled := one.enqueue("mail", "acme")
	one.ask(http.MethodPost, "/jobs/cancel", `{"ids":["`+cancelled.String()+`"]}`)
	type send struct{ method, path, body string }
	for name, a := range map[string]struct{ act, between, look send }{
		"pause":         {send{"POST", "/queues/mail/pause", `{"reason":"x"}`}, send{"POST", "/queues/mail/resume", `{}`}, send{"GET", "/queues/mail", ""}},
		"pause a while": {send{"POST", "/queues/bills/pause", `{"reason":"x","for":"1h"}`}, send{"POST", "/queues/bills/resume", `{}`}, send{"GET", "/queues/bills", ""}},
		"settings":      {send{"PATCH", "/queues/logs/settings", `{"set":{"rate":"5/s"}}`}, send{"PATCH", "/queues/logs/settings", `{"set":{"rate":"9/s"}}`}, send{"GET", "/queues/logs", ""}},
		"hold":          {send{"POST", "/jobs/hold", `{"ids":["` + job.String() + `"],"reason":"x"}`}, send{"POST", "/jobs/release", `{"ids":["` + job.String() + `"]}`}, send{"GET", "/jobs/" + job.String(), ""}},
		"retry":         {send{"POST", "/jobs/retry", `{"ids":["` + cancelled.String() + `"],"reason":"x"}`}, send{"POST", "/jobs/reschedule", `{"ids":["` + cancelled.String() + `"],"delay":"1h"}`}, send{"GET", "/jobs/" + cancelled.String(), ""}},
		"operation":     {send{"POST", "/operations", `{"kind":"cancel","where":"queue:none","reason":"x"}`}, send{}, send{"GET", "/operations", ""}},
		"tenant":        {send{"PATCH", "/tenants/acme", `{"tier":"PRO","set":{"concurrency":"5"}}`}, send{"PATCH", "/tenants/acme", `{"tier":"","set":{"concurrency":"9"}}`}, send{"GET", "/tenants/acme", ""}},
		"tenant pause":  {send{"POST", "/tenants/globex/pause", `{"for":"1h"}`}, send{"POST", "/tenants/globex/resume", `{}`}, send{"GET", "/tenants/globex", ""}},
		"limit":         {send{"POST", "/limits/bank/close", `{"for":"1h"}`}, send{"POST", "/limits/bank/open", `{}`}, send{"GET", "/limits/bank", ""}},
		"limit key":     {send{"POST", "/limits/users/close?key=ada", `{"for":"1h"}`}, send{"POST", "/limits/users/open?key=ada", `{}`}, send{"GET", "/limits/users?key=ada", ""}},
		"silence":       {send{"POST", "/alerts/silences", `{"queue":"mail","for":"1h","reason":"x"}`}, send{}, send{"GET", "/alerts", ""}},
		"schedule":      {send{"POST", "/schedules/nightly/pause", `{"reason":"x"}`}, send{"POST", "/schedules/nightly/resume", `{}`}, send{"GET", "/schedules/nightly", ""}},
		"deletion":      {send{"DELETE", "/schedules/weekly", ""}, send{"PATCH", "/schedules/weekly", `{"definition":{"queue":"mail","cron":"@weekly"}}`}, send{"GET", "/schedules/weekly", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			key := sluice.NewID().String()
			do := func(s *served, r send, headers ...string) string {
				t.Helper()
				if r.method == "" {
					return ""
				}
				answer := s.ask(r.method, r.path, r.body, headers...)
				if answer.status >= 300 {
					t.Fatalf("%s %s: %d %s", r.method, r.path, answer.status, answer.text)
				}
				return answer.text
			}
			do(one, a.act, "Idempotency-Key", key)
			do(one, a.between)
			before := timeless(t, do(one, a.look))
			do(other, a.act, "Idempotency-Key", key)
			if after := timeless(t, do(other, a.look)); after != before {
				t.Errorf("the act took effect again: %s, and before: %s", after, before)
			}
		})
	}
}

// serveFile serves the API of a store in a file, with examples of all things that the acts need.
func serveFile(t *testing.T, path string) *served {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := serveStore(t, store, httpapi.Options{})
	for _, queue := range []string{"bills", "logs"} {
		s.enqueue(queue, "globex")
	}
	for path, body := range map[string]string{
		"/limits/bank": `{"set":{"concurrency":"5"}}`, "/limits/users": `{"set":{"concurrency":"5","per":"key"}}`,
		"/schedules/nightly": `{"definition":{"queue":"mail","cron":"@daily"}}`, "/schedules/weekly": `{"definition":{"queue":"mail","cron":"@weekly"}}`,
	} {
		if r := s.ask(http.MethodPatch, path, body); r.status >= 300 {
			t.Fatalf("%s: %d %s", path, r.status, r.text)
		}
	}
	return s
}

// timeless returns an answer without instants and ages, which differ from one read to the next.
func timeless(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, one := range v {
				if name == "now" || strings.HasSuffix(name, "age") || strings.HasSuffix(name, "_seconds") {
					delete(v, name)
				}
				strip(one)
			}
		case []any:
			for _, one := range v {
				strip(one)
			}
		}
	}
	strip(value)
	return fmt.Sprint(value)
}

// TestWhatARequestWithAKeyMakesIsMadeOnce enqueues without IDs, because the answers were lost, to two servers.
func TestWhatARequestWithAKeyMakesIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	one, other := serveFile(t, path), serveFile(t, path)
	for what, body := range map[string]string{
		"/jobs":         `{"queue":"new","payload":1}`,
		"/jobs?answers": `[{"queue":"new","payload":2},{"queue":"new","payload":3},{"queue":"new","payload":4,"id":"01a1fb72-1dea-7abc-8fc6-99e4817522bb"}]`,
		"/flows":        `{"name":"f","nodes":[{"name":"a","queue":"new"}]}`,
		"/batches":      `{"name":"import"}`,
	} {
		request, _, _ := strings.Cut(what, "?")
		key := sluice.NewID().String()
		first, again := one.ask(http.MethodPost, request, body, "Idempotency-Key", key), other.ask(http.MethodPost, request, body, "Idempotency-Key", key)
		if id := `"id":"01a1fb72-1dea-7abc-8fc6-99e4817522bb"`; strings.Contains(first.text, id) {
			again.text = strings.Replace(again.text, id+`,"duplicate":true`, id, 1)
			again.text = strings.Replace(again.text, `"stored":2,"duplicates":1`, `"stored":3,"duplicates":0`, 1)
		}
		if first.status >= 300 || again.status != first.status || timeless(t, again.text) != timeless(t, first.text) {
			t.Errorf("%s: %d %s, and again: %d %s", what, first.status, first.text, again.status, again.text)
		}
	}
	var payloads []string
	for _, job := range one.claim(`"queues":["new"],"limit":10`) {
		payloads = append(payloads, string(job.Payload))
	}
	if got := strings.Join(payloads, " "); strings.Count(got, " ") != 4 || !strings.Contains(got, "2 3") {
		t.Errorf("the jobs are %s, want five, and those of a list in its order", got)
	}
}
