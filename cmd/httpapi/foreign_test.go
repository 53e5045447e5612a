package httpapi_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
)

// calls counts the calls of a store.
type calls struct {
	n  atomic.Int64
	of string
}

func (c *calls) Begin(ctx context.Context, _ *observe.Call) context.Context { return ctx }

func (c *calls) End(_ context.Context, call *observe.Call) {
	if c.of == "" || call.Name == c.of {
		c.n.Add(1)
	}
}

// byID are requests about one object, beside those with a name in their path: {id} is its id or its name.
var byID = []step{
	{"GET", "/holds?job={id}", "", 0, nil},
	{"GET", "/audit?job={id}", "", 0, nil},
	{"GET", "/jobs/{id}/end?wait=0s", "", 0, nil},
	{"PATCH", "/jobs/{id}", `{"priority":3,"reason":"x"}`, 0, nil},
	{"POST", "/operations/{id}/pace", `{"rate":"5/s","reason":"x"}`, 0, nil},
	{"POST", "/jobs/cancel", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/retry", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/hold", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/release", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/requeue", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/delete", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/jobs/resolve", `{"ids":["{id}"],"outcome":"completed","reason":"x"}`, 0, nil},
	{"POST", "/jobs/terminate", `{"ids":["{id}"],"reason":"x"}`, 0, nil},
	{"POST", "/work/checkpoint", `{"id":"{id}","token":"00000000000000000000000000000000","checkpoint":{}}`, 0, nil},
	{"POST", "/work/progress", `{"reports":[{"id":"{id}","token":"00000000000000000000000000000000","fraction":0.5}]}`, 0, nil},
	{"POST", "/work/renew", `{"lease":"1m","jobs":[{"id":"{id}","token":"00000000000000000000000000000000"}]}`, 0, nil},
	{"POST", "/work/settle", `{"worker":"h:1:a","jobs":[{"id":"{id}","token":"00000000000000000000000000000000","outcome":"complete"}]}`, 0, nil},
}

// TestForeignObjectsAreAsIfTheyWereNotThere sends requests about objects outside of a token's bounds, and about objects that are
// not stored: status, text and the calls of the store are the same.
func TestForeignObjectsAreAsIfTheyWereNotThere(t *testing.T) {
	t.Parallel()
	counted := new(calls)
	store := observe.Store(memory.New(memory.Options{}), counted)
	bounds := map[string]access.Bounds{"queues": {Queues: []string{"mail"}}, "tenants": {Tenants: []string{"acme"}}, "both": {Queues: []string{"mail"}, Tenants: []string{"acme"}}}
	callers := []access.Caller{{Name: "all", Role: access.RoleAdmin}}
	for name, b := range bounds {
		callers = append(callers, access.Caller{Name: name, Role: access.RoleAdmin, Bounds: b})
	}
	s := serveStore(t, store, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}}, callers...)
	const missing = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	as := func(name string) []string { return []string{"Authorization", "Bearer " + name} }
	s.enqueue("mail", "acme")
	held := sluice.NewJob{Queue: "sms", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex", Hold: "a look"}}
	opened := must(batch.Open(t.Context(), store, batch.Batch{Name: "import"}, sluice.Act{By: "test"}))
	s.steps([]step{
		{"POST", "/flows", `{"id":"01a1fb72-1dea-7abc-8fc6-99e4817522c1","name":"f","nodes":[{"name":"a","queue":"mail","tenant":"acme"},{"name":"b","queue":"sms","tenant":"globex","after":["a"]}]}`, 201, nil},
		{"PATCH", "/schedules/nightly", `{"definition":{"queue":"sms","tenant":"globex","cron":"@daily"},"reason":"x"}`, 200, nil},
		{"PATCH", "/limits/bank", `{"set":{"rate":"5/s"},"reason":"x"}`, 200, nil},
	}, as("all")...)
	begun := get[struct{ Operation struct{ ID string } }](s, "POST", "/operations", `{"kind":"hold","where":"queue:sms","reason":"x"}`, as("all")...)
	foreign := []string{
		s.enqueue("sms", "globex").String(), must(s.client.Enqueue(t.Context(), held)).ID.String(), opened.ID.String(), "01a1fb72-1dea-7abc-8fc6-99e4817522c1", begun.Operation.ID,
	}
	names := map[string]string{"{queue}": "sms", "{tenant}": "globex", "{schedule}": "nightly", "{limit}": "bank"}
	requests := slices.Clone(byID)
	for _, route := range httpapi.Routes() {
		if !strings.Contains(route.Path, "{") || route.Name == "await-job" {
			continue
		}
		for _, body := range []string{"", "{}", `{"reason":"x"}`} {
			if (route.Method == "GET" || route.Method == "DELETE") == (body == "") {
				requests = append(requests, step{route.Method, route.Path, body, 0, nil})
			}
		}
	}
	ids := regexp.MustCompile(`"request_id":"[^"]*"`)
	for name := range bounds {
		answer := func(r step, replaced ...string) (status int, text string, cost int64) {
			fill := strings.NewReplacer(append(replaced, "{change}", "1", "{fingerprint}", "9ac1f00d", "{tier}", "PRO", "{rule}", "dead-letters", "{no}", "1", "{level}", "full", "{name}", "x")...)
			before := counted.n.Load()
			got := s.ask(r.method, fill.Replace(r.path), fill.Replace(r.body), as(name)...)
			text = ids.ReplaceAllString(got.text, "")
			for i := 1; i < len(replaced); i += 2 {
				text = strings.ReplaceAll(text, replaced[i], replaced[i-1])
			}
			return got.status, text, counted.n.Load() - before
		}
		for i, r := range requests {
			none := []string{"{id}", missing, "{queue}", "nowhere", "{tenant}", "nobody", "{schedule}", "never", "{limit}", "nothing"}
			status, text, cost := answer(r, none...)
			if i < len(byID) && status == http.StatusUnprocessableEntity {
				t.Errorf("%s: %s %s %s asks for nothing: %s", name, r.method, r.path, r.body, text)
			}
			for _, id := range foreign {
				there := []string{"{id}", id}
				for parameter, value := range names {
					there = append(there, parameter, value)
				}
				gotStatus, got, gotCost := answer(r, there...)
				for again := 0; again < 3 && gotCost != cost; again++ { // settings are read again from time to time
					_, _, cost = answer(r, none...)
					_, _, gotCost = answer(r, there...)
				}
				if gotStatus != status || gotCost != cost || got != text && status != http.StatusUnprocessableEntity { // 422 names fields in any order
					t.Errorf("%s: %s %s %s of something foreign (%s): %d, %d calls, %s\nof nothing: %d, %d calls, %s", name, r.method, r.path, r.body, id, gotStatus, gotCost, got, status, cost, text)
				}
				if !strings.Contains(r.path+r.body, "{id}") {
					break
				}
			}
		}
	}
}

// TestAListCountsNoForeignJobs lists jobs with and without bounds. The figure of compared jobs would tell of those of others.
func TestAListCountsNoForeignJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin}, access.Caller{Name: "a", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	for range 3 {
		s.enqueue("mail", "other")
	}
	for as, want := range map[string]bool{"admin": true, "a": false} {
		r := s.ask("GET", "/jobs?where=tenant:acme", "", "Authorization", "Bearer "+as)
		if r.status != 200 || strings.Contains(r.text, "compared") != want {
			t.Errorf("%s gets %d %s, want the figure: %t", as, r.status, r.text, want)
		}
	}
}
