package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/schedule"
)

// step is a request, the status that it must have, and parts of its answer.
type step struct {
	method, path, body string
	status             int
	parts              []string
}

// steps sends requests one after another.
func (s *served) steps(all []step, headers ...string) {
	s.Helper()
	for _, one := range all {
		r := s.ask(one.method, one.path, one.body, headers...)
		if r.status != one.status {
			s.Errorf("%s %s %s: %d %s, want %d", one.method, one.path, one.body, r.status, r.text, one.status)
		}
		for _, part := range one.parts {
			if !strings.Contains(r.text, part) {
				s.Errorf("%s %s: %s lacks %s", one.method, one.path, r.text, part)
			}
		}
	}
}

func TestTenantsAndTiersAreChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{
		{"POST", "/tiers", `{"name":"GOLD"}`, 201, []string{`"name":"GOLD"`}},
		{"POST", "/tiers", `{"name":"GOLD"}`, 409, []string{`"conflict"`}},
		{"PATCH", "/tiers/GOLD", `{"set":{"concurrency":"5","rate":"10/s"}}`, 200, []string{`"concurrency":5`, `"rate":"10/s"`}},
		{"PATCH", "/tiers/GOLD", `{"set":{"rate":null}}`, 200, []string{`"concurrency":5`}},
		{"PATCH", "/tiers/GOLD", `{"set":{"colour":"1"}}`, 422, []string{"colour"}},
		{"PATCH", "/tiers/NONE", `{"set":{"rate":"1/s"}}`, 404, []string{"there is no such tier"}},
		{"POST", "/tiers/preset", `{}`, 200, []string{`"name":"FREE"`, `"concurrency":20`}},
		{"GET", "/tiers", "", 200, []string{`"name":"GOLD"`, `"name":"PRO"`}},
		{"PATCH", "/tenants/acme", `{"tier":"GOLD","set":{"weight":"3"},"queue":"mail","for":"2h","reason":"they pay"}`, 200, []string{`"tier":"GOLD"`, `"weight":3`, `"until"`}},
		{"PATCH", "/tenants/acme", `{"tier":"NONE"}`, 422, []string{`no tier`}},
		{"PATCH", "/tenants/acme", `{}`, 422, []string{`tier or set`}},
		{"GET", "/tenants", "", 200, []string{`"name":"acme"`, `"tier_limits":[{`, `"weight":3`}},
		{"POST", "/tenants/acme/pause", `{"queue":"mail","for":"1h","reason":"a bug of theirs"}`, 200, []string{`"paused":true`, `"paused_until"`}},
		{"POST", "/tenants/acme/resume", `{"queue":"mail"}`, 200, nil},
		{"DELETE", "/tenants/acme?reason=gone", "", 200, nil},
		{"DELETE", "/tenants/acme", "", 404, []string{"there is no such tenant"}},
		{"DELETE", "/tiers/GOLD", "", 200, nil},
	})
}

func TestSharedLimitsAreChangedAndClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{
		{"PATCH", "/limits/bank", `{"set":{"rate":"500/5s","concurrency":"20"},"reason":"the contract"}`, 200, []string{`"rate":"500/5s"`, `"concurrency":20`, `"version":1`}},
		{"PATCH", "/queues/mail/settings", `{"set":{"limits":"bank"}}`, 200, nil},
		{"GET", "/limits/bank", "", 200, []string{`"queues":["mail"]`, `"in_flight":0`}},
		{"GET", "/limits", "", 200, []string{`"name":"bank"`}},
		{"GET", "/limits/none", "", 404, []string{"there is no such limit"}},
		{"POST", "/limits/bank/close", `{"for":"10m","reason":"bank is down"}`, 200, []string{`"closed":true`, `"closed_until"`}},
		{"POST", "/limits/bank/open", `{"reason":"bank is back"}`, 200, []string{`"closed":false`}},
		{"POST", "/limits/bank/close?key=a.example", `{"for":"10m","reason":"it answers 429"}`, 409, []string{"is not per key"}},
		{"PATCH", "/limits/host", `{"set":{"per":"key","concurrency":"2"},"reason":"be polite"}`, 200, []string{`"per_key":true`}},
		{"POST", "/limits/host/close?key=a.example", `{"reason":"it answers 429"}`, 422, []string{"invalid for: a limit key is closed for a time, such as 10m; 0s is none"}},
		{"POST", "/limits/host/close?key=a.example", `{"for":"10m","reason":"it answers 429"}`, 200, []string{`"closed":false`}},
		{"POST", "/limits/host/open?key=a.example", `{"reason":"it answers again"}`, 200, []string{`"closed":false`}},
		{"GET", "/audit?object=limit&name=host", "", 200, []string{"close key", "open key", "a.example"}},
		{"PATCH", "/limits/bank", `{"set":{"concurrency":"200"},"reason":"a slip"}`, 200, []string{`"concurrency":200`}},
		{"POST", "/limits/bank/undo", `{"reason":"a zero too many"}`, 200, []string{`"concurrency":20,`}},
		{"PATCH", "/limits/shown", `{"set":{"per":"key","concurrency":"2"},"reason":"be polite"}`, 200, []string{`"per_key":true`}},
		{"GET", "/limits/shown?key=one.example&key=two.example", "", 200, []string{`"key":"one.example"`, `"key":"two.example"`}},
		{"DELETE", "/limits/bank", "", 409, []string{"not_allowed"}},
		{"PATCH", "/queues/mail/settings", `{"set":{"limits":null}}`, 200, nil},
		{"DELETE", "/limits/bank", "", 200, nil},
		{"GET", "/admission", "", 200, []string{`"declared":false`, `"max_queues":10000`}},
		{"PATCH", "/admission", `{"declared":true,"reason":"a misspelt name"}`, 200, []string{`"declared":true`, `"max_queues":10000`}},
		{"POST", "/jobs", `{"queue":"sms","payload":1}`, 409, []string{"queue_not_admitted"}},
	})
}

func TestSchedulesAreChanged(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{
		{"PATCH", "/schedules/nightly", `{"definition":{"queue":"reports","cron":"30 2 * * *","zone":"Europe/Berlin","jitter":"2m","payload":{"day":"{{date}}"}}}`, 200, []string{`"jitter":"2m"`, `"next_at"`, `"version":1`}},
		{"PATCH", "/schedules/nightly", `{"definition":{"every":"10m","zone":null}}`, 200, []string{`"every":"10m"`, `"jitter":"2m"`, `"version":2`}},
		{"PATCH", "/schedules/nightly", `{"definition":{"every":"soon"}}`, 422, []string{`every`}},
		{"PATCH", "/schedules/nightly", `{"definition":{"colour":"red"}}`, 422, []string{`colour`}},
		{"PATCH", "/schedules/other", `{"definition":{"every":"10m"}}`, 422, []string{`queue`}},
		{"GET", "/schedules", "", 200, []string{`"name":"nightly"`}},
		{"GET", "/schedules/nightly?next=3", "", 200, []string{`"next":["`}},
		{"POST", "/schedules/nightly/pause", `{"reason":"bank is closed"}`, 200, []string{`"paused":true`, `"note":"bank is closed"`}},
		{"POST", "/schedules/nightly/resume", `{}`, 200, nil},
		{"POST", "/schedules/nightly/undo", `{}`, 200, []string{`"paused":true`}},
		{"POST", "/schedules/nightly/lift", `{}`, 409, []string{"not_allowed"}},
		{"POST", "/schedules/nightly/trigger", `{"reason":"a wrong report"}`, 200, []string{`"result":"by hand"`, `"job"`}},
		{"POST", "/schedules/nightly/backfill", `{"from":"2026-11-01T00:00:00Z","to":"2026-11-01T01:00:00Z","dry_run":true,"limit":3}`, 200, []string{`"fires":["2026-11-01T00:00:00Z","2026-11-01T00:10:00Z","2026-11-01T00:20:00Z"]`}},
		{"POST", "/schedules/nightly/backfill", `{"from":"2026-11-01T00:00:00Z","to":"2026-11-01T01:00:00Z","rate":"10/m"}`, 200, []string{`"kind":"backfill"`, `"rate":"10/m"`}},
		{"DELETE", "/schedules/nightly", "", 200, nil},
		{"GET", "/schedules/nightly", "", 404, []string{"there is no such schedule"}},
	})
}

func TestSchedulesBeyondTheBoundsAreNotThere(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin},
		access.Caller{Name: "acme", Role: access.RoleAdmin, Bounds: access.Bounds{Queues: []string{"mail"}}})
	const every = `{"definition":{"queue":"sms","every":"10m"}}`
	s.steps([]step{{"PATCH", "/schedules/theirs", every, 200, nil}}, "Authorization", "Bearer admin")
	s.steps([]step{
		{"GET", "/schedules", "", 200, []string{`"schedules":[]`}},
		{"GET", "/schedules/theirs", "", 404, nil},
		{"PATCH", "/schedules/theirs", `{"definition":{"queue":"mail"}}`, 403, nil},
		{"PATCH", "/schedules/ours", every, 403, nil},
		{"PATCH", "/schedules/ours", `{"definition":{"queue":"mail","every":"10m"}}`, 200, nil},
		{"POST", "/schedules/theirs/trigger", `{}`, 404, nil},
		{"DELETE", "/schedules/theirs", "", 404, nil},
		{"POST", "/flows", `{"name":"f","nodes":[{"name":"a","queue":"sms"}]}`, 403, nil},
		{"POST", "/jobs", `{"queue":"mail","payload":1,"batch":"01a1fb72-1dea-7abc-8fc6-99e4817522bb"}`, 403, nil},
	}, "Authorization", "Bearer acme")
}

func TestBatchesAreOpenedClosedAndCancelled(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	s.steps([]step{
		{"POST", "/batches", `{"id":"` + id + `","name":"import","on_complete":{"queue":"reports","payload":{"of":"{{batch}}"}}}`, 201, []string{`"state":"open"`, `"on_complete"`}},
		{"POST", "/batches", `{"id":"` + id + `","name":"import","on_complete":{"queue":"reports","payload":{"of":"{{batch}}"}}}`, 201, nil},
		{"POST", "/batches", `{"id":"` + id + `","name":"other"}`, 422, []string{`"code":"invalid"`, "batch " + id + " is stored with another name, on_complete; open it as it is stored"}},
		{"POST", "/jobs", `{"queue":"mail","payload":1,"batch":"` + id + `"}`, 201, nil},
		{"GET", "/batches?unfinished=true", "", 200, []string{`"total":1`}},
		{"POST", "/batches/" + id + "/pause", `{"reason":"bank is closed"}`, 200, []string{`"kind":"hold"`}},
		{"POST", "/batches/" + id + "/resume", `{"reason":"bank is open"}`, 200, []string{`"kind":"release"`}},
		{"POST", "/batches/" + id + "/close", `{}`, 200, []string{`"state":"closed"`}},
		{"POST", "/jobs", `{"queue":"mail","payload":1,"batch":"` + id + `"}`, 409, nil},
		{"POST", "/batches/" + id + "/retry", `{"rate":"5/s","canary":2,"reason":"bank is back"}`, 200, []string{`"canary":2`}},
		{"POST", "/batches/" + id + "/cancel", `{"reason":"wrong file"}`, 200, []string{`"kind":"cancel"`}},
		{"GET", "/batches/" + id, "", 200, []string{`"progress":0`}},
		{"GET", "/batches/" + sluice.NewID().String(), "", 404, []string{"there is no such batch"}},
	})
}

func TestFlowsAreCheckedByTheSchemasOfTheirQueues(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	settings := sluice.DefaultSettings()
	settings.PayloadSchema = `{"required":["to"]}`
	if _, err := s.client.EnsureQueue(s.Context(), "mail", settings, sluice.Act{By: "ada"}); err != nil {
		s.Fatal(err)
	}
	s.steps([]step{
		{"POST", "/flows", `{"name":"f","nodes":[{"name":"a","queue":"mail","payload":{"to":"ada"}}]}`, 201, nil},
		{"POST", "/flows", `{"name":"f","nodes":[{"name":"a","queue":"mail","payload":{"a":1}}]}`, 422, []string{"payload_schema"}},
	})
}

func TestAMissingJobOrBatchOfANewJobIsNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{NoLogin: true})
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	s.steps([]step{
		{"POST", "/jobs", `{"queue":"mail","payload":1,"after":["` + id + `"]}`, 404, []string{"job " + id + ", which it is to run after"}},
		{"POST", "/jobs", `{"queue":"mail","payload":1,"batch":"` + id + `"}`, 404, []string{"batch " + id}},
	})
}

func TestFlowsAreStartedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	body := `{"id":"` + id + `","name":"import","nodes":[{"name":"fetch","queue":"mail","payload":{"a":1}},{"name":"store","queue":"mail","after":["fetch"]}]}`
	s.steps([]step{
		{"POST", "/flows", body, 201, []string{id}},
		{"POST", "/flows", body, 201, []string{id}},
		{"POST", "/flows", `{"name":"loop","nodes":[{"name":"a","queue":"mail","after":["a"]}]}`, 422, nil},
		{"GET", "/flows", "", 200, []string{`"name":"import"`, `"nodes":2`}},
		{"GET", "/flows/" + id, "", 200, []string{`"name":"store"`, `"state":"blocked"`, `"critical_path":["fetch"]`}},
		{"GET", "/flows/" + sluice.NewID().String(), "", 404, []string{"there is no such flow"}},
	})
}

func TestAlertRulesAreChangedAndSilenced(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	s.steps([]step{
		{"GET", "/alerts", "", 200, []string{`"alerts":[]`, `"silences":[]`, `"now"`}},
		{"GET", "/alerts/rules", "", 200, []string{`"name":"dead-letters"`}},
		{"PATCH", "/alerts/rules/many", `{"set":{"metric":"ready","op":">","threshold":"0","severity":"note"},"reason":"to see"}`, 200, []string{`"threshold":0`, `"metric":"ready"`}},
		{"PATCH", "/alerts/rules/many", `{"set":{"colour":"red"}}`, 422, []string{"colour"}},
		{"POST", "/alerts/test", `{}`, 200, []string{`"rule":"many","queue":"mail"`, `"breaks":true`}},
		{"POST", "/alerts/rules/many/disable", `{}`, 200, []string{`"disabled":true`}},
		{"POST", "/alerts/rules/many/enable", `{}`, 200, []string{`"disabled":false`}},
		{"POST", "/alerts/rules/none/enable", `{}`, 404, []string{"there is no such rule"}},
		{"DELETE", "/alerts/rules/many", "", 200, nil},
		{"DELETE", "/alerts/rules/many", "", 404, nil},
		{"POST", "/alerts/silences", `{"for":"2h","reason":"x"}`, 422, []string{"set all"}},
		{"GET", "/alerts/history?rule=many", "", 200, []string{`"many"`, `"reason":"to see"`}},
	})
	silence := get[struct{ ID string }](s, "POST", "/alerts/silences", `{"rule":"unserved","queue":"mail","for":"2h","reason":"the workers move"}`)
	s.steps([]step{
		{"GET", "/alerts", "", 200, []string{silence.ID}},
		{"DELETE", "/alerts/silences/" + silence.ID, "", 200, nil},
		{"DELETE", "/alerts/silences/" + silence.ID, "", 404, []string{"there is no such silence"}},
	})
}

func TestTheAuditIsVerifiedAndKept(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{
		{"GET", "/audit/head", "", 404, []string{"there is no such seal"}},
		{"POST", "/audit/verify", `{}`, 200, []string{`"intact":true`}},
		{"POST", "/audit/verify", `{"heads":["x"]}`, 422, []string{"heads"}},
		{"GET", "/audit/keep", "", 200, []string{`"notable":"730d"`}},
		{"PATCH", "/audit/keep", `{"full":"90d","reason":"the contract"}`, 200, []string{`"full":"90d"`, `"notable":"730d"`}},
		{"PATCH", "/audit/keep", `{"full":"1m"}`, 422, []string{"full"}},
		{"PATCH", "/audit/keep", `{}`, 422, []string{"notable or full"}},
		{"GET", "/audit/head", "", 200, []string{`"no":1`, `"seal":{"no":1,`}},
		{"GET", "/audit/seals?from=1", "", 200, []string{`"seals":[{"no":1,`}},
		{"GET", "/audit/seals?from=2", "", 200, []string{`"seals":[]`}},
		{"GET", "/audit/digests?upto=9223372036854775807&limit=1", "", 200, []string{`"digests":[{"seq":1,`, `"level":"notable","sum":"`}},
		{"GET", "/audit/digests?upto=1&limit=10001", "", 422, []string{"limit"}},
		{"GET", "/audit/seals/7/batches/full", "", 200, []string{`"batch":null`}},
		{"GET", "/audit/seals/7/batches/other", "", 422, []string{"level"}},
	})
}

func TestTheServerSaysThatItHasNoEngine(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	id := s.enqueue("mail", "").String()
	s.steps([]step{
		{"POST", "/queues/mail/engine/check", `{}`, 409, []string{"no_engine", "--temporal"}},
		{"POST", "/queues/mail/engine/reconcile", `{"dry_run":true}`, 409, []string{"no_engine"}},
		{"GET", "/queues/mail/orphan-runs", "", 200, []string{`"runs":[]`}},
		{"GET", "/queues/none/orphan-runs", "", 404, []string{"there is no such queue"}},
		{"GET", "/jobs/" + id + "/run", "", 404, nil},
		{"GET", "/metrics", "", 404, []string{"no_metrics"}},
	})
}

// TestTheHealthOfAStoreIsToldInFull compares the report of each store with what the API says of it, and closes the store.
func TestTheHealthOfAStoreIsToldInFull(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		want, err := health.Of(s.Context(), s.store, health.Options{})
		if err != nil {
			s.Fatal(err)
		}
		got := get[struct {
			Kind     string
			Ill      bool
			Findings []health.Finding
			Metrics  []struct{ Name string }
		}](s, "GET", "/health", "")
		if got.Kind != want.Kind || got.Ill != want.Ill() || len(got.Findings) != len(want.Findings) || len(got.Metrics) == 0 != (len(want.Metrics) == 0) {
			s.Errorf("the API says %+v of a store with the health %+v", got, want)
		}
		for i, f := range got.Findings {
			if want := want.Findings[i]; f.Check != want.Check || f.Well != want.Well || f.Severity != want.Severity || f.What == "" || f.Repair != want.Repair {
				s.Errorf("finding %d is %+v, want %+v", i, f, want)
			}
		}
		if want.Kind == "memory" {
			return // it needs no server or file for its answer
		}
		if err := s.store.Close(); err != nil {
			s.Fatal(err)
		}
		if r := s.ask("GET", "/health", ""); s.problem(r, 503, "store_unavailable").Do == "" || r.header.Get("Retry-After") == "" {
			s.Errorf("of a store that is closed it says %v %s", r.header, r.text)
		}
	})
}

// TestEachFieldOfAJobIsDescribed compares the fields that a job may have with the schema JobBody.
func TestEachFieldOfAJobIsDescribed(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	fields := get[struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}](s, "GET", "/openapi.json", "").Components.Schemas["JobBody"].Properties
	names := strings.Split(jobline.FieldNames(), ", ")
	if len(fields) != len(names) {
		t.Errorf("%d fields are described, and a job may have %d", len(fields), len(names))
	}
	for _, name := range names {
		if fields[name] == nil {
			t.Errorf("%s is not described", name)
		}
	}
}

// TestDescribedObjectsHaveTheirFields compares types that write their own JSON with their schemas.
func TestDescribedObjectsHaveTheirFields(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	described := get[struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}](s, "GET", "/openapi.json", "").Components.Schemas
	span, at := 5*time.Minute, time.Unix(1e9, 0)
	definition := schedule.Definition{
		Queue: "q", Cron: "@daily", Every: span, At: []time.Time{at}, Zone: "UTC", Start: at, End: at, MaxFires: 1, Payload: []byte("1"), Key: "k", Tenant: "t", Priority: 1,
		Labels: map[string]string{"a": "b"}, Overlap: schedule.Skip, CatchUp: schedule.Last, CatchUpWindow: span, Jitter: span, PauseAfter: 1,
	}
	for name, value := range map[string]any{
		"ScheduleBody": schedule.Schedule{Name: "n", Definition: definition, Paused: true, Note: "n", Declared: &schedule.Definition{Queue: "other"}, NextAt: at, Version: 1, ChangedAt: at, ChangedBy: "b", Reason: "r"},
		"RuleView":     alert.Rule{Name: "n", Queue: "q", RateShare: 1, For: span, Window: span, Covers: alert.CoversWorkers, Summary: "s", Runbook: "r", Source: "s", Version: 1},
	} {
		text, err := json.Marshal(value)
		fields := make(map[string]any)
		if err != nil || json.Unmarshal(text, &fields) != nil {
			t.Fatal(err)
		}
		if properties := described[name].Properties; len(fields) != len(properties) {
			t.Errorf("%s describes %d fields, and %T has %d: %s", name, len(properties), value, len(fields), text)
		}
		for field := range fields {
			if described[name].Properties[field] == nil {
				t.Errorf("%s does not describe %s", name, fmt.Sprint(field))
			}
		}
	}
}
