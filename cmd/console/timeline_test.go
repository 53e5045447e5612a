package console

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
)

// told lists the steps of a timeline, with their durations.
func told(steps []step) (lines []string) {
	for _, s := range steps {
		lines = append(lines, s.Text+" "+s.Took())
	}
	return lines
}

func TestATimelineNamesTheCauseOfEachWait(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 16, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	job := jobRow{Job: sluice.Job{State: sluice.StateCompleted, CreatedAt: at(0), DueAt: at(700), ClaimedAt: at(900), FinishedAt: at(930), Attempts: 1}}
	got := told(timelineOf(jobView{
		Job:      job,
		Attempts: []sluice.Attempt{{Attempt: 1, ClaimedAt: at(600), FailedAt: at(610), Error: "no answer"}},
		Audit: []sluice.AuditEntry{
			{Event: sluice.EventRecover, At: at(500)},
			{Event: sluice.EventClaim, At: at(440)},
			{Event: audit.EventReleaseHold, At: at(300)},
			{Event: audit.EventHold, At: at(100), Actor: "bob"},
		},
	}, pausesOf([]sluice.AuditEntry{
		{At: at(892), After: json.RawMessage(`{"paused":false}`)},
		{At: at(800), Event: audit.EventBatch, After: json.RawMessage(`{"claimed":3}`)},
		{At: at(710), Actor: "ann", After: json.RawMessage(`{"paused":true,"paused_until":""}`)},
	})))
	want := []string{
		unknown + "1 min 40 s", "was held by bob 3 min 20 s", unknown + "2 min 20 s", "lost its holder 1 min", unknown + "1 min 40 s",
		"attempt 1 failed 10 s", "waited for the backoff 1 min 30 s", unknown + "10 s", "waited for its queue, which ann had paused 3 min 2 s",
		unknown + "8 s", "attempt 2 completed 30 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// unknown begins the text of a wait whose cause no audit entry names.
const unknown = "waited for its turn; which limit held it is not known "

func TestATimelineNamesPausesBreakersAndPredecessors(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 16, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	job := jobRow{Job: sluice.Job{Queue: "mail", State: sluice.StateCompleted, CreatedAt: at(0), DueAt: at(0), ClaimedAt: at(600), FinishedAt: at(610)}}
	tenant := tenantPausesOf([]sluice.AuditEntry{
		{At: at(260), Event: audit.EventChange, After: json.RawMessage(`{"queue":"mail","tenant":"acme"}`)},
		{At: at(250), Event: audit.EventChange, After: json.RawMessage(`{"tier":"PRO"}`)},
		{At: at(200), Actor: "ann", Event: audit.EventChange, After: json.RawMessage(`{"queue":"mail","tenant":"acme","paused":true}`)},
		{At: at(100), Actor: "bob", Event: audit.EventChange, After: json.RawMessage(`{"queue":"other","tenant":"acme","paused":true}`)},
	}, "mail")
	breakers := breakersOf([]sluice.AuditEntry{
		{At: at(590), Event: audit.EventBreaker, Reason: "closed"}, {At: at(400), Event: audit.EventBreaker, Reason: "opened: engine temporal: no answer"},
	})
	before := predecessorsOf(job, []jobRow{{Job: sluice.Job{FinishedAt: at(150)}}, {Job: sluice.Job{FinishedAt: at(120)}}, {}})
	got := told(timelineOf(jobView{Job: job}, slices.Concat(tenant, breakers, before)))
	want := []string{
		"waited for the jobs that it runs after 2 min 30 s", unknown + "50 s", "waited for its tenant, which ann had paused 1 min", unknown + "2 min 20 s",
		"waited for the engine, which a dispatcher could not use 3 min 10 s", unknown + "10 s", "attempt 1 completed 10 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestATimelineSaysForWhatAJobWaitsNow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	job := jobRow{Job: sluice.Job{State: sluice.StateQueued, CreatedAt: now.Add(-192*time.Second - 500*time.Millisecond), DueAt: now.Add(-time.Hour)}}
	got := told(timelineOf(jobView{Job: job, Why: &explain.Explanation{
		Start: now.Add(time.Hour + time.Minute), Reasons: []explain.Reason{{Name: "due", Open: true}, {Name: "concurrency", Summary: "5 of 5"}, {Name: "order"}},
	}}, nil))
	if len(got) != 2 || got[0] != "waits for tenant concurrency 3 min 12 s" || got[1][:32] != "should start then, if nothing ch" {
		t.Errorf("got %q", got)
	}
}

func TestATreeKeepsOrderAndIsBounded(t *testing.T) {
	t.Parallel()
	n := readTree(json.RawMessage(`{"b":1e400,"a":[true,null,"[redacted:email]"],"c":{}}`))
	if n.Kind != "object" || n.Nodes[0].Key != "b" || n.Nodes[0].Text != "1e400" || n.Nodes[1].Nodes[1].Text != "null" || !n.Nodes[1].Nodes[2].Redacted || n.Nodes[2].Kind != "object" {
		t.Errorf("got %+v", n)
	}
	deep := make([]byte, 0, 20_001)
	deep = append(deep, slices.Repeat([]byte("["), 5000)...)
	deep = append(deep, slices.Repeat([]byte("]"), 5000)...)
	long, _ := json.Marshal(make([]int, 100_000))
	for _, text := range [][]byte{deep, long, []byte("{")} {
		if shown, _ := json.Marshal(readTree(text)); len(shown) > 1<<20 {
			t.Errorf("%d bytes are shown as %d", len(text), len(shown))
		}
	}
}

func TestATreeShowsOnlyWhatIsLookedFor(t *testing.T) {
	t.Parallel()
	text, _ := json.Marshal(map[string]any{"orders": make([]int, 2*maxNodes), "to": map[string]any{"Name": "ada", "address": map[string]int{"house": 7}}, "zip": "N1"})
	n, found := findTree(text, "NAME")
	if found != 1 || len(n.Nodes) != 1 || n.Nodes[0].Key != "to" || len(n.Nodes[0].Nodes) != 1 || n.Nodes[0].Nodes[0].Text != "ada" || !n.Nodes[0].Nodes[0].Hit || !n.Nodes[0].Open {
		t.Errorf("a name behind many parts: found %d, %+v", found, n)
	}
	if n, found = findTree(text, "addr"); found != 1 || n.Nodes[0].Nodes[0].Nodes[0].Text != "7" {
		t.Errorf("a name has its parts: found %d, %+v", found, n)
	}
	if n, found = findTree(text, "grace"); found != 0 || len(n.Nodes) != 0 {
		t.Errorf("what is not there: found %d, %+v", found, n)
	}
}

func TestARunHasItsPageAtTheEngine(t *testing.T) {
	t.Parallel()
	s := &screen{visit: &visit{console: &Console{options: Options{RunPage: "https://temporal.example.com/namespaces/{namespace}/workflows/{ref}"}}}}
	for want, job := range map[string]sluice.Job{
		"https://temporal.example.com/namespaces/billing/workflows/order%2F42": {Ref: "order/42", Engine: "temporal/billing"},
		"https://temporal.example.com/namespaces/default/workflows/order-42":   {Ref: "order-42", Engine: "temporal"},
		"": {Ref: "order-42"},
	} {
		if got := s.RunPage(jobRow{Job: job}); got != want {
			t.Errorf("%+v: got %q, want %q", job, got, want)
		}
	}
	if _, err := New(Options{TracePage: "javascript:alert(1)"}); err == nil {
		t.Error("a script is taken for the address of traces")
	}
	if _, err := New(Options{RunPage: "javascript:alert(1)"}); err == nil {
		t.Error("an address that is no page is taken")
	}
}
