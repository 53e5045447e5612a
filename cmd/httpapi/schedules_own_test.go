package httpapi_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/schedule"
)

// TestABoundedOperatorsSchedulesStayWithinTheBounds tries the ways back to a foreign queue or tenant: undo, lift, and a
// declaration of one's own.
func TestABoundedOperatorsSchedulesStayWithinTheBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin},
		access.Caller{Name: "a", Role: access.RoleOperator, Bounds: access.Bounds{Queues: []string{"mail.*"}, Tenants: []string{"acme"}}})
	act := sluice.Act{By: "test"}
	within := schedule.Definition{Queue: "mail.a", Tenant: "acme", Every: time.Hour}
	for name, foreign := range map[string]schedule.Definition{
		"queue":  {Queue: "pay", Tenant: "acme", Every: time.Hour, Payload: json.RawMessage(`"secret"`)},
		"tenant": {Queue: "mail.a", Tenant: "other", Every: time.Hour, Payload: json.RawMessage(`"secret"`)},
	} {
		must(schedule.Ensure(t.Context(), s.store, []schedule.Schedule{{Name: name, Definition: foreign}}, act))
		must(schedule.Set(t.Context(), s.store, name, within, act))
		for _, path := range []string{"/schedules/" + name, "/schedules"} {
			if r := s.ask("GET", path, "", "Authorization", "Bearer a"); r.status != 200 || !strings.Contains(r.text, "acme") || strings.Contains(r.text, "declared") || strings.Contains(r.text, "secret") {
				t.Errorf("%s: %d, and it shows a foreign declaration: %s", path, r.status, r.text)
			}
		}
		for _, verb := range []string{"undo", "lift"} {
			s.problem(s.ask("POST", "/schedules/"+name+"/"+verb, `{}`, "Authorization", "Bearer a"), 403, "out_of_bounds")
		}
		r := s.ask("POST", "/schedules/"+name+"/pause", `{}`, "Authorization", "Bearer a")
		if r.status != 200 || strings.Contains(r.text, "secret") {
			t.Errorf("pause: %d %s", r.status, r.text)
		}
		stored := must(schedule.Read(t.Context(), s.store, name))
		if stored.Queue != within.Queue || stored.Tenant != within.Tenant || !stored.Paused || stored.Declared == nil {
			t.Errorf("the schedule is %+v, want it paused, in its place, and declared as before", stored)
		}
		put := func(declared *schedule.Definition) reply {
			changed := stored
			changed.Declared, changed.Paused = declared, false
			return s.ask("PUT", "/schedules/"+name, string(must(json.Marshal(map[string]any{"schedule": changed}))), "Authorization", "Bearer a")
		}
		s.problem(put(&foreign), 403, "out_of_bounds")
		if r := put(nil); r.status != 200 || strings.Contains(r.text, "secret") {
			t.Errorf("a change without the declaration: %d %s", r.status, r.text)
		}
		if stored := must(schedule.Read(t.Context(), s.store, name)); stored.Declared == nil || stored.Declared.Queue != foreign.Queue {
			t.Errorf("the declaration of a program is lost: %+v", stored)
		}
	}
	if r := s.ask("POST", "/schedules/queue/undo", `{}`, "Authorization", "Bearer admin"); r.status != 200 {
		t.Errorf("undo without bounds: %d %s", r.status, r.text)
	}
}

// TestASchedulesFiresShowNoForeignJobs fires a schedule in a foreign queue, and moves it into the bounds of a token.
func TestASchedulesFiresShowNoForeignJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin},
		access.Caller{Name: "a", Role: access.RoleOperator, Bounds: access.Bounds{Queues: []string{"mail.*"}}})
	act := sluice.Act{By: "test"}
	must(schedule.Set(t.Context(), s.store, "nightly", schedule.Definition{Queue: "pay", Every: time.Hour}, act))
	foreign := must(schedule.Trigger(t.Context(), s.store, "nightly", act, nil)).Job.String()
	must(schedule.Set(t.Context(), s.store, "nightly", schedule.Definition{Queue: "mail.a", Every: time.Hour}, act))
	own := must(schedule.Trigger(t.Context(), s.store, "nightly", act, nil)).Job.String()
	for _, path := range []string{"/schedules/nightly", "/schedules"} {
		r := s.ask("GET", path, "", "Authorization", "Bearer a")
		if r.status != 200 || strings.Contains(r.text, foreign) || !strings.Contains(r.text, own) || strings.Count(r.text, `"by hand"`) < 2 {
			t.Errorf("%s: %d, want both fires and the job %s alone, not %s: %s", path, r.status, own, foreign, r.text)
		}
		if r := s.ask("GET", path, "", "Authorization", "Bearer admin"); !strings.Contains(r.text, foreign) {
			t.Errorf("%s without bounds lacks the job %s: %s", path, foreign, r.text)
		}
	}
}

// TestANullResetsOneFieldAlone changes a schedule that fires at instants as the console does: it sends null for each empty field.
func TestANullResetsOneFieldAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for name, rule := range map[string]schedule.Definition{"at": {At: []time.Time{at}}, "cron": {Cron: "30 2 * * *"}, "every": {Every: time.Hour}} {
		rule.Queue, rule.Key = "mail", "k"
		must(schedule.Set(t.Context(), s.store, name, rule, sluice.Act{By: "test"}))
		nulls := map[string]string{"at": `"cron":null,"every":null`, "cron": `"every":null,"at":null`, "every": `"cron":null`}[name]
		if r := s.ask("PATCH", "/schedules/"+name, `{"definition":{`+nulls+`,"key":null,"tenant":"acme"}}`); r.status != 200 {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
		rule.Key, rule.Tenant = "", "acme"
		if got := must(schedule.Read(t.Context(), s.store, name)); got.Cron != rule.Cron || got.Every != rule.Every || len(got.At) != len(rule.At) || got.Key != "" || got.Tenant != "acme" {
			t.Errorf("%s: the definition is %+v, want %+v", name, got.Definition, rule)
		}
		if r := s.ask("PATCH", "/schedules/"+name, `{"definition":{"every":"2h","cron":null,"at":null}}`); r.status != 200 {
			t.Errorf("%s: a new rule: %d %s", name, r.status, r.text)
		}
		if got := must(schedule.Read(t.Context(), s.store, name)); got.Cron != "" || got.Every != 2*time.Hour || len(got.At) > 0 {
			t.Errorf("%s: the definition is %+v, want every 2 h alone", name, got.Definition)
		}
	}
}

// TestFieldsThatAreSetAtTheSameTimeAllStay changes each field of a schedule by a call of its own.
func TestFieldsThatAreSetAtTheSameTimeAllStay(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	must(schedule.Set(t.Context(), s.store, "nightly", schedule.Definition{Queue: "mail", Every: time.Hour}, sluice.Act{By: "test"}))
	var all sync.WaitGroup
	for _, field := range []string{`"tenant":"acme"`, `"key":"k"`, `"priority":3`, `"max_fires":7`, `"pause_after":2`, `"jitter":"1m"`, `"catch_up":"all"`} {
		all.Go(func() {
			if r := s.ask("PATCH", "/schedules/nightly", `{"definition":{`+field+`}}`); r.status != 200 {
				t.Errorf("%s: %d %s", field, r.status, r.text)
			}
		})
	}
	all.Wait()
	d := must(schedule.Read(t.Context(), s.store, "nightly")).Definition
	if d.Tenant != "acme" || d.Key != "k" || d.Priority != 3 || d.MaxFires != 7 || d.PauseAfter != 2 || d.Jitter != time.Minute || d.CatchUp != schedule.All {
		t.Errorf("the definition is %+v, want all fields", d)
	}
}
