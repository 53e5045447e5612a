package httpapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestMain runs more tests at once than there are processors, since most tests wait for a store or a connection.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// eachStore runs a test against the API of every store.
func eachStore(t *testing.T, test func(s *served)) {
	t.Helper()
	for _, c := range []struct {
		name string
		open func(t *testing.T) (sluice.Store, error)
	}{
		{"memory", func(*testing.T) (sluice.Store, error) { return memory.New(memory.Options{}), nil }},
		{"sqlite", func(t *testing.T) (sluice.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
		}},
		{"postgres", func(t *testing.T) (sluice.Store, error) {
			return postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store, err := c.open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			test(serveStore(t, store, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}}))
		})
	}
}

// held is a claimed job, as the API shows it to a worker in another language.
type held struct {
	ID           string          `json:"id"`
	Queue        string          `json:"queue"`
	Token        string          `json:"token"`
	Payload      json.RawMessage `json:"payload"`
	Checkpoint   json.RawMessage `json:"checkpoint"`
	Attempts     int             `json:"attempts"`
	Recoveries   int             `json:"recoveries"`
	LeaseSeconds float64         `json:"lease_seconds"`
	LeaseUntil   time.Time       `json:"lease_until"`
	Timeout      float64         `json:"timeout_seconds"`
}

// named returns the reference to a claimed job for a request body.
func (h held) named() string { return fmt.Sprintf(`"id":"%s","token":"%s"`, h.ID, h.Token) }

// claim claims jobs; more has further fields of the request body.
func (s *served) claim(more string) []held {
	s.Helper()
	return get[struct{ Jobs []held }](s, "POST", "/work/claim", `{"worker":"h:1:a",`+more+`}`).Jobs
}

// claimOne claims the only job.
func (s *served) claimOne(more string) held {
	s.Helper()
	jobs := s.claim(more)
	if len(jobs) != 1 {
		s.Fatalf("claimed %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

// settle sends one outcome, and returns the code of its error; empty: the server has stored the outcome.
func (s *served) settle(h held, more string) string {
	s.Helper()
	got := get[struct {
		Done   int
		Failed []struct {
			ID    string
			Error httpapi.Problem
		}
	}](s, "POST", "/work/settle", `{"worker":"h:1:a","jobs":[{`+h.named()+`,`+more+`}]}`)
	if len(got.Failed) == 1 && got.Done == 0 && got.Failed[0].ID == h.ID {
		return got.Failed[0].Error.Code
	}
	if got.Done != 1 || len(got.Failed) > 0 {
		s.Fatalf("the settlement got %+v, want 1 done and none failed", got)
	}
	return ""
}

// is checks the state of a job, and returns the job.
func (s *served) is(id, label string) map[string]any {
	s.Helper()
	job := get[map[string]any](s, "GET", "/jobs/"+id, "")
	if job["label"] != label {
		s.Errorf("the job is %s, want %s: %v", job["label"], label, job)
	}
	return job
}

const ofMail = `"queues":["mail"]`

func TestAWorkerEndsJobsInEachWay(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		client := sluice.NewClient(s.store, sluice.ClientOptions{})
		settings := sluice.DefaultSettings()
		settings.MaxAttempts, settings.Lease = 2, 40*time.Second
		settings.Backoff.Base, settings.Backoff.Max = time.Hour, time.Hour
		must(client.EnsureQueue(s.Context(), "mail", settings, sluice.Act{By: "test"}))
		for range 6 {
			s.enqueue("mail", "acme")
		}
		jobs := s.claim(ofMail + `,"limit":6`)
		if len(jobs) != 6 || jobs[0].LeaseSeconds != 40 || string(jobs[0].Payload) != `{"secret":7}` || jobs[0].Timeout != 900 {
			s.Fatalf("claimed %+v, want 6 jobs with a lease of 40 s and a timeout of 900 s", jobs)
		}
		if more := s.claim(ofMail); len(more) != 0 {
			s.Errorf("jobs were claimed twice: %+v", more)
		}
		for i, c := range []struct{ more, label string }{
			{`"outcome":"complete","result":{"sent":1}`, "completed"},
			{`"outcome":"fail","error":"no answer"`, "retrying"},
			{`"outcome":"fail","error":"no answer","delay":"1h"`, "retrying"},
			{`"outcome":"fail","error":"no such person","permanent":true`, "dead"},
			{`"outcome":"release","delay":"1h"`, "scheduled"},
			{`"outcome":"release"`, "ready"},
		} {
			for range 2 { // the worker repeats the request because the answer was lost
				if code := s.settle(jobs[i], c.more); code != "" {
					s.Errorf("%s: refused with %s", c.more, code)
				}
			}
			s.is(jobs[i].ID, c.label)
			if code := s.settle(jobs[i], `"outcome":"complete"`); code != "lost" && c.label != "completed" {
				s.Errorf("a late outcome after %s: %q, want lost", c.more, code)
			}
		}
		again := s.claimOne(ofMail)
		if again.ID != jobs[5].ID || again.Token == jobs[5].Token {
			s.Errorf("claimed %+v, want the released job with a new token", again)
		}
		s.settle(again, `"outcome":"fail","error":"1"`)
		if err := s.client.RunNow(s.Context(), []sluice.ID{must(sluice.ParseID(again.ID))}, sluice.Act{By: "test"}); err != nil {
			s.Fatal(err)
		}
		last := s.claimOne(ofMail)
		if last.Attempts != 1 || s.settle(last, `"outcome":"fail","error":"2"`) != "" {
			s.Errorf("claimed %+v, want 1 attempt, and its last failure stored", last)
		}
		s.is(last.ID, "dead")
		for _, body := range []string{`"outcome":"complete","error":"x"`, `"outcome":"fail","result":1`, `"outcome":"complete","delay":"1h"`, `"outcome":"release","delay":"soon"`} {
			if code := s.settle(jobs[0], body); code != "invalid" {
				s.Errorf("%s: %q, want invalid", body, code)
			}
		}
	})
}

func TestAKilledWorkersJobRunsAgainFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		id := s.enqueue("mail", "").String()
		first := s.claimOne(ofMail + `,"lease":"1s"`)
		get[any](s, "POST", "/work/checkpoint", `{`+first.named()+`,"checkpoint":{"page":3}}`)
		get[any](s, "POST", "/work/progress", `{"reports":[{`+first.named()+`,"fraction":0.4,"message":"page 3 of 8"}]}`)
		if job := s.is(id, "claimed"); job["progress"] == nil || job["holder"] != "h:1:a" {
			s.Errorf("the job is %v, want its progress and its holder", job)
		}
		s.recover("mail") // upkeep thinks that the worker is dead
		second := s.claimOne(ofMail + `,"lease":"1m"`)
		if second.ID != id || string(second.Checkpoint) != `{"page":3}` && string(second.Checkpoint) != `{"page": 3}` || second.Recoveries != 1 {
			s.Errorf("claimed %+v, want the recovered job with its checkpoint", second)
		}
		// The first worker was only frozen.
		s.problem(s.ask("POST", "/work/checkpoint", `{`+first.named()+`,"checkpoint":1}`), 409, "lost")
		if code := s.settle(first, `"outcome":"complete"`); code != "lost" {
			s.Errorf("a late outcome: %q", code)
		}
		lost := get[struct{ Lost []map[string]any }](s, "POST", "/work/renew", `{"lease":"1m","jobs":[{`+first.named()+`}]}`).Lost
		kept := get[struct{ Lost []map[string]any }](s, "POST", "/work/renew", `{"lease":"1m","jobs":[{`+second.named()+`}]}`).Lost
		if len(lost) != 1 || lost[0]["id"] != id || lost[0]["cancelled"] != false || len(kept) > 0 {
			s.Errorf("the first worker lost %v, and the second %v, want the job and none", lost, kept)
		}
		if code := s.settle(second, `"outcome":"complete"`); code != "" {
			s.Errorf("the second worker cannot complete the job: %q", code)
		}
	})
}

// recover waits until a job's lease ends, and recovers the job.
func (s *served) recover(queue string) {
	s.Helper()
	for until := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got, err := s.store.Recover(s.Context(), queue, 10, "upkeep")
		if err != nil || time.Now().After(until) {
			s.Fatal(got, err)
		}
		if got.Requeued == 1 {
			return
		}
	}
}

func TestARateLimitedJobStopsThoseThatShareItsLimit(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		s.steps([]step{
			{"PATCH", "/limits/bank", `{"set":{"concurrency":"5"}}`, 200, nil},
			{"PATCH", "/queues/mail/settings", `{"set":{"limits":"bank"}}`, 200, nil},
			{"PATCH", "/queues/sms/settings", `{"set":{"limits":"bank"}}`, 200, nil},
		})
		s.enqueue("mail", "acme")
		s.enqueue("sms", "acme")
		s.enqueue("fax", "acme")
		job := s.claimOne(ofMail)
		if code := s.settle(job, `"outcome":"rate_limited"`); code != "invalid" {
			s.Errorf("without a delay: %q", code)
		}
		for range 2 { // the worker repeats the request because the answer was lost
			if code := s.settle(job, `"outcome":"rate_limited","delay":"1h"`); code != "" {
				s.Errorf("the outcome rate_limited is refused: %q", code)
			}
		}
		s.steps([]step{{"GET", "/limits/bank", "", 200, []string{`"closed":true`, "was rate limited for 1h"}}})
		if jobs := s.claim(`"queues":["sms"]`); len(jobs) != 0 {
			s.Errorf("a job that shares the limit was claimed: %+v", jobs)
		}
		if code := s.settle(s.claimOne(`"queues":["fax"]`), `"outcome":"rate_limited","delay":"1h"`); code != "" {
			s.Errorf("the outcome rate_limited of a queue without a limit is refused: %q", code)
		}
		s.steps([]step{{"GET", "/tenants", "", 200, []string{`"queue":"fax"`, `"paused":true`}}})
	})
}

func TestARenewalTellsOfACancel(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		id := s.enqueue("mail", "")
		job := s.claimOne(ofMail)
		if err := s.client.Cancel(s.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
			s.Fatal(err)
		}
		lost := get[struct{ Lost []map[string]any }](s, "POST", "/work/renew", `{"lease":"1m","jobs":[{`+job.named()+`}]}`).Lost
		if len(lost) != 1 || lost[0]["cancelled"] != true {
			s.Errorf("the renewal lost %v, want the cancelled job", lost)
		}
	})
}

func TestAClaimWhoseAnswerWasLostIsSentAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		for range 3 {
			s.enqueue("mail", "")
		}
		const claim = ofMail + `,"limit":2,"token":"a-token-of-the-caller","wait":"5s"`
		first := s.claim(claim)
		again := s.claim(claim + `,"again":true`)
		if len(first) != 2 || len(again) != 2 || first[0].named() != again[0].named() || first[1].named() != again[1].named() {
			s.Errorf("%+v, again %+v", first, again)
		}
		other := get[struct{ Jobs []held }](s, "POST", "/work/claim", `{"worker":"h:2:b",`+claim+`,"again":true}`).Jobs
		if len(other) != 1 || other[0].ID == first[0].ID || other[0].ID == first[1].ID {
			s.Errorf("another worker with the same token: %+v", other)
		}
		s.problem(s.ask("POST", "/work/claim", `{"worker":"h:1:a","queues":["mail"],"again":true}`), 422, "invalid")
	})
}

func TestAClaimTellsWhenTheNextJobIsDue(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		ask := func() float64 {
			return get[struct {
				Seconds float64 `json:"next_due_seconds"`
			}](s, "POST", "/work/claim", `{"worker":"h:1:a",`+ofMail+`}`).Seconds
		}
		if got := ask(); got != -1 {
			s.Errorf("the next job of an empty queue is due in %v s, want -1", got)
		}
		if r := s.ask("POST", "/jobs", `{"queue":"mail","payload":1,"delay":"1h"}`); r.status != 201 {
			s.Fatalf("enqueue: %d %s", r.status, r.text)
		}
		if got := ask(); got < 0 || got > 3600 {
			s.Errorf("the next job is due in %v s, want an hour at most", got)
		}
	})
}

func TestAClaimFromSeveralQueuesIsFoundAgainInEachOfThem(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		for range 2 {
			s.enqueue("sms", "")
		}
		const claim = `"queues":["mail","sms"],"limit":2,"token":"a-token-of-the-caller"`
		first := s.claim(claim)
		s.enqueue("mail", "") // the first queue has a job now
		again := s.claim(claim + `,"again":true`)
		if len(first) != 2 || len(again) != 2 || first[0].named() != again[0].named() || again[0].Queue != "sms" {
			s.Errorf("%+v, again %+v", first, again)
		}
		if fresh := s.claim(`"queues":["mail","sms"],"token":"a-token-that-is-new","again":true`); len(fresh) != 1 || fresh[0].Queue != "mail" {
			s.Errorf("a claim that never arrived got %+v", fresh)
		}
	})
}

func TestAWaitingClaimGetsAJobAsSoonAsItIsThere(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		got := make(chan []held, 2)
		for range 2 {
			go func() { got <- s.claim(`"queues":["none","mail"],"wait":"60s"`) }()
		}
		for range 2 {
			s.enqueue("mail", "")
			if jobs := <-got; len(jobs) != 1 || jobs[0].Queue != "mail" {
				s.Errorf("the waiting claim got %+v, want a job of mail", jobs)
			}
		}
		if none := s.claim(`"queues":["mail"],"wait":"1s"`); len(none) != 0 {
			s.Errorf("the claim of an empty queue got %+v", none)
		}
		soon := must(s.client.Enqueue(s.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Delay: 300 * time.Millisecond}}))
		if jobs := s.claim(`"queues":["mail"],"wait":"60s"`); len(jobs) != 1 || jobs[0].ID != soon.ID.String() {
			s.Errorf("the claim got %+v, want the job that falls due", jobs)
		}
	})
}

func TestLimitsHoldForWaitingClaims(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		settings := sluice.DefaultSettings()
		settings.Concurrency = 1
		must(s.client.EnsureQueue(s.Context(), "mail", settings, sluice.Act{By: "test"}))
		for range 3 {
			s.enqueue("mail", "")
		}
		first := s.claimOne(ofMail + `,"limit":3`)
		var running atomic.Int32
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				job := s.claimOne(ofMail + `,"wait":"60s","limit":3`)
				if n := running.Add(1); n > 1 {
					s.Errorf("%d jobs run at once", n)
				}
				running.Add(-1)
				s.settle(job, `"outcome":"complete"`)
			})
		}
		s.settle(first, `"outcome":"complete"`)
		all.Wait()
	})
}

func TestAWorkerIsListedAndTold(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		const beat = `{"worker":"h:1:a","queues":["mail"],"slots":4,"busy":1,"version":"v2"}`
		if got := get[map[string]any](s, "POST", "/work/heartbeat", beat); got["wanted"] != "work" {
			s.Errorf("the heartbeat got %v, want work", got)
		}
		if r := s.ask("GET", "/holders", ""); !strings.Contains(r.text, `"h:1:a"`) || !strings.Contains(r.text, `"version":"v2"`) {
			s.Errorf("the list of holders lacks h:1:a of version v2: %s", r.text)
		}
		get[any](s, "POST", "/holders/instructions", `{"target":{"version":"v2"},"wanted":"quiesce","reason":"a bug"}`)
		if got := get[map[string]any](s, "POST", "/work/heartbeat", beat); got["wanted"] != "quiesce" || got["reason"] != "a bug" {
			s.Errorf("the heartbeat got %v, want quiesce because of a bug", got)
		}
		s.problem(s.ask("POST", "/work/heartbeat", `{"worker":"h:1:a","protocol":2147483648}`), 422, "invalid") // no column has room for it
		get[any](s, "POST", "/work/heartbeat", `{"worker":"h:1:a","leaving":true}`)
		if holders := must(presence.Holders(s.Context(), s.store)); len(holders) != 0 {
			s.Errorf("the worker has left, and the store knows %+v", holders)
		}
	})
}

func TestABoundedWorkerClaimsFromItsQueuesAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "w", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{"mail"}}},
		access.Caller{Name: "t", Role: access.RoleWorker, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	s.enqueue("mail", "")
	s.enqueue("sms", "")
	for queues, status := range map[string]int{`["sms"]`: 403, `["mail","sms"]`: 403, `["sluice.notify.x"]`: 422, `["mail.*"]`: 422, `["mail","mail"]`: 200} {
		r := s.ask("POST", "/work/claim", `{"worker":"h:1:a","queues":`+queues+`}`, "Authorization", "Bearer w")
		if r.status != status {
			t.Errorf("a claim of %s got %d %s, want %d", queues, r.status, r.text, status)
		}
		if status == 200 && !strings.Contains(r.text, `"holder":"h:1:a by w"`) {
			t.Errorf("the holder is not h:1:a by w: %s", r.text)
		}
	}
	s.problem(s.ask("POST", "/work/claim", `{"worker":"h:1:a","queues":["mail"]}`, "Authorization", "Bearer t"), 403, "out_of_bounds")
	s.problem(s.ask("POST", "/work/heartbeat", `{"worker":"h:1:a","queues":["sms"]}`, "Authorization", "Bearer w"), 403, "out_of_bounds")
}

// TestAClaimSentAgainStaysWithinTheBounds narrows the bounds of a token after a claim, in each way to send a claim again.
func TestAClaimSentAgainStaysWithinTheBounds(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "before", Role: access.RoleWorker}, access.Caller{Name: "after", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{"mail", "post"}}})
	foreign := s.enqueue("pay", "").String()
	const proof = `"worker":"h:1:a","proof":"00000000000000000000000000000001"`
	if r := s.ask("POST", "/work/claim", `{`+proof+`,"queues":["pay"]}`, "Authorization", "Bearer before"); !strings.Contains(r.text, foreign) {
		t.Fatalf("the claim got %d %s", r.status, r.text)
	}
	for _, more := range []string{`"queues":["mail"]`, `"queues":["mail","post"]`, `"queues":["mail","post"],"limits":{"mail":1,"post":1}`} {
		r := s.ask("POST", "/work/claim", `{`+proof+`,"again":true,`+more+`}`, "Authorization", "Bearer after")
		if r.status != 200 || strings.Contains(r.text, foreign) {
			t.Errorf("%s: %d, and it shows a job outside of the bounds: %s", more, r.status, r.text)
		}
	}
	if r := s.ask("POST", "/work/claim", `{`+proof+`,"again":true,"queues":["pay"]}`, "Authorization", "Bearer before"); !strings.Contains(r.text, foreign) {
		t.Errorf("the claim sent again lost its job: %d %s", r.status, r.text)
	}
}

// TestALeaseOfAQueueCanBeRenewed renews a job of a queue whose lease is shorter than one over HTTP may be.
func TestALeaseOfAQueueCanBeRenewed(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	settings := sluice.DefaultSettings()
	settings.Lease = 500 * time.Millisecond
	must(s.client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}))
	for _, more := range []string{ofMail, `"queues":["mail","sms"]`, ofMail + `,"limits":{"mail":1}`} {
		s.enqueue("mail", "")
		job := s.claimOne(more)
		if r := s.ask("POST", "/work/renew", fmt.Sprintf(`{"lease":"%gs","jobs":[{%s}]}`, job.LeaseSeconds, job.named())); r.status != 200 {
			t.Errorf("%s: the renewal of a lease of %g s: %d %s", more, job.LeaseSeconds, r.status, r.text)
		}
	}
}
