package httpapi_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/stat"
)

// count stores statistics of queues for a past slot.
func (s *served) count(at time.Time, enqueued int64, queues ...string) {
	s.Helper()
	var slots []stat.Stat
	for _, queue := range queues {
		one := stat.Stat{Queue: queue, At: at, Every: stat.Fine, Counts: stat.Counts{Enqueued: enqueued, Completed: 1}}
		one.Run.Add(time.Second)
		slots = append(slots, one)
	}
	if err := stat.Given(s.store).AddStats(s.Context(), "test", slots); err != nil {
		s.Fatal(err)
	}
}

// figures is an answer with figures over time.
type figures struct {
	Queue   string
	Every   float64 `json:"every_seconds"`
	Counted bool
	Slots   []struct {
		At     time.Time
		Counts stat.Counts
		Run    struct{ P99 float64 }  `json:"run_seconds"`
		Wait   *struct{ P99 float64 } `json:"wait_seconds"`
	}
}

func TestFiguresOverTimeAreSumsOverTheQueues(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin},
		access.Caller{Name: "mail", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail*"}}},
		access.Caller{Name: "none", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"other"}}},
		access.Caller{Name: "acme", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	for _, queue := range []string{"mail", "sms"} {
		s.steps([]step{{"PATCH", "/queues/" + queue + "/settings", `{"set":{"rate":"10/s"}}`, 200, nil}}, "Authorization", "Bearer admin")
	}
	at := time.Now().UTC().Truncate(stat.Fine).Add(-5 * time.Minute)
	s.count(at, 3, "mail", "sms")
	for _, c := range []struct {
		as, path string
		enqueued int64
	}{
		{"admin", "/series", 6},
		{"admin", "/series?window=10m", 6},
		{"admin", "/queues/mail/series", 3},
		{"mail", "/series", 3},
		{"mail", "/queues/mail/series", 3},
		{"admin", "/series?window=2h&to=" + at.Add(-time.Hour).Format(time.RFC3339), 0},
		{"none", "/series", 0},
	} {
		var sum stat.Counts
		got := get[figures](s, "GET", c.path, "", "Authorization", "Bearer "+c.as)
		for _, slot := range got.Slots {
			sum.Add(slot.Counts)
			if slot.Run.P99 < 0.9 || slot.Run.P99 > 1.1 || slot.Wait != nil {
				t.Errorf("%s as %s: p99 of run is %v, and wait %v", c.path, c.as, slot.Run.P99, slot.Wait)
			}
		}
		if sum.Enqueued != c.enqueued || got.Counted != (c.enqueued > 0) {
			t.Errorf("%s as %s: %+v, want %d enqueued", c.path, c.as, got, c.enqueued)
		}
	}
	for path, every := range map[string]float64{"/series?window=15m": 10, "/series?window=6h": 60, "/series?window=7d": 3600, "/series?window=24h&slots=180": 540, "/series?from=2020-01-01T00:00:00Z": -1} {
		if every < 0 {
			s.problem(s.ask("GET", path, "", "Authorization", "Bearer admin"), 422, "invalid")
		} else if got := get[figures](s, "GET", path, "", "Authorization", "Bearer admin"); got.Every != every {
			t.Errorf("%s: slots of %v s, want %v", path, got.Every, every)
		}
	}
	s.problem(s.ask("GET", "/queues/sms/series", "", "Authorization", "Bearer mail"), 404, "not_found")
	s.problem(s.ask("GET", "/queues/none/series", "", "Authorization", "Bearer admin"), 404, "not_found")
	s.problem(s.ask("GET", "/series", "", "Authorization", "Bearer acme"), 403, "out_of_bounds")
	get[figures](s, "GET", "/series?tenant=acme", "", "Authorization", "Bearer acme")
}

func TestForecastsAssumeOtherLimits(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "admin", Role: access.RoleAdmin},
		access.Caller{Name: "mail", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail"}}})
	s.steps([]step{
		{"PATCH", "/queues/mail/settings", `{"set":{"rate":"1/s"}}`, 200, nil},
		{"PATCH", "/queues/sms/settings", `{"set":{"rate":"1/s"}}`, 200, nil},
		{"POST", "/jobs", `[{"queue":"mail","payload":1},{"queue":"mail","payload":2},{"queue":"sms","payload":3}]`, 200, nil},
	}, "Authorization", "Bearer admin")
	if _, err := forecast.Recount(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	s.steps([]step{
		{"GET", "/forecast", "", 200, []string{`"queue":"mail"`, `"queue":"sms"`, `"summary":"1/s"`, `"bucket":"5m"`}},
		{"GET", "/forecast?ahead=24h&bucket=1h&rate=7/s", "", 200, []string{`"summary":"7/s"`, `"bucket":"1h"`}},
		{"GET", "/queues/mail/forecast?batch=500/5s&run_time=2s&concurrency=9", "", 200, []string{`"summary":"500 every 5s"`, `concurrency 9`, `"run_time":"2s"`}},
		{"GET", "/queues/mail/forecast?batch=many", "", 422, []string{"batch"}},
		{"GET", "/forecast?rate=fast", "", 422, []string{"rate"}},
		{"GET", "/forecast?ahead=30d", "", 422, []string{"ahead"}},
		{"GET", "/use?tenants=5", "", 200, []string{`"queue":"mail"`, `"tokens"`}},
		{"GET", "/tenants/acme", "", 200, []string{`"name":"acme"`, `"in_flight":0`}},
	}, "Authorization", "Bearer admin")
	for _, path := range []string{"/forecast", "/use"} {
		got := get[struct{ Queues []sluice.Flow }](s, "GET", path, "", "Authorization", "Bearer mail")
		if len(got.Queues) != 1 || got.Queues[0].Queue != "mail" {
			t.Errorf("%s: a bounded caller sees %+v", path, got)
		}
	}
}

func TestTheHistoryOfSettingsHasChangesAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{{"PATCH", "/queues/mail/settings", `{"set":{"rate":"1/s"},"reason":"the first"}`, 200, nil}})
	for range 150 {
		if err := s.store.AppendAudit(t.Context(), []sluice.AuditEntry{{Actor: "dispatcher", Object: audit.ObjectQueue, Name: "mail", Event: audit.EventBatch}}); err != nil {
			t.Fatal(err)
		}
	}
	got := get[struct{ Entries []sluice.AuditEntry }](s, "GET", "/queues/mail/settings/history", "")
	if len(got.Entries) != 1 || got.Entries[0].Reason != "the first" {
		t.Errorf("%d entries, want the change alone", len(got.Entries))
	}
}

// TestStatisticsLeaveOutWhatNobodyKnows reads the shares of a queue while nobody counts, while no job has ended, and after the only one has died.
func TestStatisticsLeaveOutWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.steps([]step{{"PATCH", "/queues/mail/settings", `{"set":{"rate":"1/s"}}`, 200, nil}})
	read := func() map[string]any { return get[map[string]any](s, "GET", "/queues/mail/stats", "") }
	add := func(slot int, counts stat.Counts) {
		one := stat.Stat{Queue: "mail", At: time.Now().UTC().Truncate(stat.Fine).Add(time.Duration(slot-30) * stat.Fine), Every: stat.Fine, Counts: counts}
		if err := stat.Given(s.store).AddStats(t.Context(), "test", []stat.Stat{one}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		counts stat.Counts
		known  map[string]any
	}{
		{stat.Counts{}, map[string]any{"counted": false}},
		{stat.Counts{Enqueued: 3}, map[string]any{"counted": true, "completed_per_second": 0.0}},
		{stat.Counts{Claimed: 1, Dead: 1}, map[string]any{"counted": true, "completed_per_second": 0.0, "success_rate": 0.0, "lease_expiry_rate": 0.0}},
	} {
		if c.counts != (stat.Counts{}) {
			add(i, c.counts)
		}
		got := read()
		for _, name := range []string{"counted", "completed_per_second", "success_rate", "lease_expiry_rate", "wait_seconds", "run_seconds", "total_seconds"} {
			if got[name] != c.known[name] {
				t.Errorf("%+v: %s is %v, want %v", c.counts, name, got[name], c.known[name])
			}
		}
	}
}
