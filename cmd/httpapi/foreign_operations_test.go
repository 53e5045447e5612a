package httpapi_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// TestTheIDOfAForeignOperationTellsNothingOfIt starts operations with the ID of another one as the key of the act. The audit of a job
// names the operations that changed it, so a token with bounds can know such an ID.
func TestTheIDOfAForeignOperationTellsNothingOfIt(t *testing.T) {
	t.Parallel()
	bounds := map[string]access.Bounds{"queue": {Queues: []string{"mail"}}, "tenant": {Tenants: []string{"acme"}}}
	callers := []access.Caller{{Name: "all", Role: access.RoleAdmin}}
	for name, b := range bounds {
		callers = append(callers, access.Caller{Name: name, Role: access.RoleOperator, Bounds: b})
	}
	s := serve(t, httpapi.Options{}, callers...)
	const nightly = `{"definition":{"queue":"mail","tenant":"acme","cron":"@daily"},"reason":"x"}`
	s.steps([]step{{"PATCH", "/schedules/nightly", nightly, 200, nil}}, "Authorization", "Bearer all")
	s.enqueue("mail", "acme")
	begun := get[struct{ Operation struct{ ID string } }](s, "POST", "/operations", `{"kind":"cancel","where":"tenant:acme,globex","reason":"globex left"}`, "Authorization", "Bearer all")
	for name := range bounds {
		for path, body := range map[string]string{
			"/operations":                 `{"kind":"cancel","where":"state:queued","reason":"x"}`,
			"/schedules/nightly/backfill": `{"from":"2026-11-01T00:00:00Z","to":"2026-11-03T00:00:00Z","reason":"x"}`,
		} {
			r := s.ask("POST", path, body, "Authorization", "Bearer "+name, "Idempotency-Key", begun.Operation.ID)
			if s.problem(r, 409, "conflict"); strings.Contains(r.text, "globex") {
				t.Errorf("%s: POST %s tells of a foreign operation: %s", name, path, r.text)
			}
		}
	}
}

// TestOwnOperationsAreSentAgain sends operations of a token with bounds twice: the second answer is that of the first.
func TestOwnOperationsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "mail", Role: access.RoleOperator, Bounds: access.Bounds{Queues: []string{"mail"}}})
	s.steps([]step{{"PATCH", "/schedules/nightly", `{"definition":{"queue":"mail","cron":"@daily"},"reason":"x"}`, 200, nil}}, "Authorization", "Bearer mail")
	s.enqueue("mail", "acme")
	for path, body := range map[string]string{
		"/operations":                 `{"kind":"cancel","where":"state:queued","reason":"x"}`,
		"/schedules/nightly/backfill": `{"from":"2026-11-01T00:00:00Z","to":"2026-11-03T00:00:00Z","reason":"x"}`,
	} {
		const first, second = "01a1fb72-1dea-7abc-8fc6-99e4817522d1", "01a1fb72-1dea-7abc-8fc6-99e4817522d2"
		key := map[bool]string{true: first, false: second}[path == "/operations"]
		for range 2 {
			got := get[struct{ Operation struct{ ID string } }](s, "POST", path, body, "Authorization", "Bearer mail", "Idempotency-Key", key)
			if got.Operation.ID != key {
				t.Errorf("POST %s began %s, want %s", path, got.Operation.ID, key)
			}
		}
	}
}
