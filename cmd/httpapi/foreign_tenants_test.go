package httpapi_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestATokenForTenantsReadsNoWordsAboutQueues asks for queues as tokens that are bounded to a tenant.
func TestATokenForTenantsReadsNoWordsAboutQueues(t *testing.T) {
	t.Parallel()
	acme := access.Bounds{Tenants: []string{"acme"}}
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "viewer", Role: access.RoleViewer, Bounds: acme},
		access.Caller{Name: "producer", Role: access.RoleProducer, Bounds: acme}, access.Caller{Name: "admin", Role: access.RoleAdmin, Bounds: acme})
	s.steps([]step{
		{"PATCH", "/queues/mail/settings", `{"set":{"rate":"5/s"},"reason":"globex is slow"}`, 200, nil},
		{"PATCH", "/queues/pay/settings", `{"set":{"rate":"7/s"},"reason":"globex pays"}`, 200, nil},
	}, "Authorization", "Bearer all")
	for _, name := range []string{"viewer", "producer", "admin"} {
		if name != "producer" { // whoever may not look gets no counts anyway
			s.problem(s.ask("GET", "/queues", "", "Authorization", "Bearer "+name), 403, "out_of_bounds")
		}
		r := s.ask("GET", "/queues?counts=false", "", "Authorization", "Bearer "+name)
		if r.status != 200 || !strings.Contains(r.text, `"rate":"5/s"`) || strings.Contains(r.text, "globex") || strings.Contains(r.text, `"by"`) || strings.Contains(r.text, "depth") {
			t.Errorf("of a queue, a token for tenants reads the settings alone; %s got %d %s", name, r.status, r.text)
		}
	}
	store := must(remote.Open(t.Context(), strings.TrimSuffix(s.url, httpapi.Root), remote.Options{Token: "producer"}))
	defer func() { _ = store.Close() }()
	for _, queue := range []string{"mail", "new"} {
		job := sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}
		if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), job); err != nil {
			t.Errorf("a program with the token enqueues into %s: %v", queue, err)
		}
	}
}

// TestAFullQueueTellsNoCountOfOtherTenants sends more jobs than a queue has room for, alone and as a list.
func TestAFullQueueTellsNoCountOfOtherTenants(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "tenant", Role: access.RoleProducer, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	s.steps([]step{{"PATCH", "/queues/mail/settings", `{"set":{"max_waiting":"10"},"reason":"x"}`, 200, nil}}, "Authorization", "Bearer all")
	for range 7 {
		s.enqueue("mail", "globex")
	}
	jobs := "[" + strings.Repeat(`{"queue":"mail","tenant":"acme","payload":1},`, 4) + `{"queue":"mail","tenant":"acme","payload":1}]`
	for name, tells := range map[string]bool{"all": true, "tenant": false} {
		r := s.ask("POST", "/jobs", jobs, "Authorization", "Bearer "+name)
		if told := strings.Contains(r.text, "7 jobs wait") || strings.Contains(r.text, `"waiting":7`); r.status != 200 || !strings.Contains(r.text, `"full"`) || told != tells {
			t.Errorf("%s got %d %s", name, r.status, r.text)
		}
	}
}

// TestAnExplanationTellsNothingOfForeignJobs explains jobs that wait for those of other tenants and queues. Their queue is paused, and
// shares a limit with another.
func TestAnExplanationTellsNothingOfForeignJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "tenant", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme"}}},
		access.Caller{Name: "queue", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail"}}})
	enqueue := func(queue, tenant string, o sluice.EnqueueOptions) sluice.ID {
		o.Tenant = tenant
		return must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: o})).ID
	}
	s.steps([]step{
		{"PATCH", "/limits/bank", `{"set":{"concurrency":"1"},"reason":"x"}`, 200, nil},
		{"PATCH", "/queues/mail/settings", `{"set":{"concurrency":"1","limits":"bank"}}`, 200, nil},
		{"PATCH", "/queues/sms/settings", `{"set":{"limits":"bank"}}`, 200, nil},
	}, "Authorization", "Bearer all")
	before := enqueue("mail", "globex", sluice.EnqueueOptions{OrderKey: "o", Priority: 1})
	must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "sms", Payload: []byte(`1`)}))
	must(s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "sms", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}))
	elsewhere := enqueue("sms", "acme", sluice.EnqueueOptions{})
	inOrder := enqueue("mail", "acme", sluice.EnqueueOptions{OrderKey: "o"})
	after := enqueue("mail", "acme", sluice.EnqueueOptions{After: []sluice.ID{before, elsewhere}})
	behind := enqueue("mail", "globex", sluice.EnqueueOptions{After: []sluice.ID{inOrder}})
	ahead := enqueue("mail", "acme", sluice.EnqueueOptions{})
	s.steps([]step{{"POST", "/queues/mail/pause", `{"reason":"globex floods"}`, 200, nil}}, "Authorization", "Bearer all")
	why := func(caller string, id sluice.ID) string {
		r := s.ask("GET", "/jobs/"+id.String()+"/why", "", "Authorization", "Bearer "+caller)
		if r.status != 200 {
			t.Fatalf("why %s as %s: %d %s", id, caller, r.status, r.text)
		}
		return r.text[strings.Index(r.text, `"reasons"`):]
	}
	for _, c := range []struct {
		caller string
		id     sluice.ID
		hidden []string
		wanted []string
	}{
		{"tenant", inOrder, []string{before.String(), behind.String(), "globex", "[0-9]+ due jobs", "[0-9]+ in flight"}, []string{"waits for a job outside of your bounds", `order key \\"o\\"`, "queue is paused", "due jobs? comes? before"}},
		{"tenant", after, []string{before.String(), "globex"}, []string{elsewhere.String() + " is queued", "1 of them are outside of your bounds"}},
		{"queue", after, []string{elsewhere.String(), "in the queues of limit"}, []string{before.String() + " is queued", "1 of them are outside of your bounds", "globex floods"}},
		{"tenant", ahead, []string{`"start"`, "[0-9]+ due jobs", "in the queues of limit"}, []string{"due jobs come before it", "lets no job start now"}},
		{"all", inOrder, nil, []string{before.String(), behind.String(), "globex floods"}},
	} {
		text := why(c.caller, c.id)
		for _, hidden := range c.hidden {
			if found := regexp.MustCompile(hidden).FindString(text); found != "" {
				t.Errorf("why of %s as %s tells %q: %s", c.id, c.caller, found, text)
			}
		}
		for _, wanted := range c.wanted {
			if !regexp.MustCompile(wanted).MatchString(text) {
				t.Errorf("why of %s as %s lacks %q: %s", c.id, c.caller, wanted, text)
			}
		}
	}
	for _, path := range []string{"/jobs/" + inOrder.String(), "/jobs?where=queue:mail"} {
		r := s.ask("GET", path, "", "Authorization", "Bearer tenant")
		if r.status != 200 || strings.Contains(r.text, `"blocked_by":"`+before.String()) || !strings.Contains(r.text, `"label":"blocked"`) {
			t.Errorf("%s: %d, want blocked jobs, and not %s, which blocks them: %s", path, r.status, before, r.text)
		}
	}
}

// stuck is a store that answers no question about a job.
type stuck struct{ sluice.Store }

func (stuck) Job(ctx context.Context, _ sluice.ID) (sluice.Job, error) {
	<-ctx.Done()
	return sluice.Job{}, ctx.Err()
}

// TestWhatABoundedTokensJobsRunAfterIsReadOnce counts the jobs that the store reads for jobs that run after others.
func TestWhatABoundedTokensJobsRunAfterIsReadOnce(t *testing.T) {
	t.Parallel()
	counted := &calls{of: "job"}
	store := observe.Store(memory.New(memory.Options{}), counted)
	producer := access.Caller{Name: "p", Role: access.RoleProducer, Bounds: access.Bounds{Queues: []string{"mail"}}}
	s := serveStore(t, store, httpapi.Options{}, producer)
	job := func(after ...string) string {
		return `{"queue":"mail","payload":1,"after":["` + strings.Join(after, `","`) + `"]}`
	}
	cost := func(status int, body string) int64 {
		before := counted.n.Load()
		if r := s.ask("POST", "/jobs", body, "Authorization", "Bearer p"); r.status != status {
			t.Errorf("%.60s: %d %.300s, want %d", body, r.status, r.text, status)
		}
		return counted.n.Load() - before
	}
	first, second := s.enqueue("mail", "").String(), s.enqueue("mail", "").String()
	if one := cost(201, job(first)); one != 1 {
		t.Errorf("a job that runs after one job cost %d reads, want 1", one)
	}
	if many := cost(201, job(slices.Repeat([]string{first}, 5000)...)); many != 1 {
		t.Errorf("a job that runs after one job 5000 times cost %d reads, want 1", many)
	}
	if list := cost(200, "["+strings.Join(slices.Repeat([]string{job(first)}, 50), ",")+"]"); list != 1 {
		t.Errorf("50 jobs that run after one cost %d reads, want 1", list)
	}
	if both := cost(201, job(first, second)); both != 2 {
		t.Errorf("a job that runs after two jobs cost %d reads, want 2", both)
	}
	ids := make([]string, 2*sluice.MaxAfter)
	for i := range ids {
		ids[i] = sluice.NewID().String()
	}
	if refused := cost(422, job(ids...)); refused != 0 {
		t.Errorf("a job that runs after too many jobs cost %d calls", refused)
	}
	many := "[" + strings.Join([]string{job(first, ids[0]), job(second), job(first)}, ",") + "]"
	if r := s.ask("POST", "/jobs", many, "Authorization", "Bearer p"); r.status != 200 || !strings.Contains(r.text, `"stored":2,"duplicates":0,"refused":1`) {
		t.Errorf("a list of which one job runs after an unknown one: %d %s", r.status, r.text)
	}
	jobs := slices.Repeat([]sluice.NewJob{{Queue: "mail", Payload: []byte(`1`)}}, sluice.MaxAfter+1)
	for i, receipt := range must(s.client.EnqueueMany(t.Context(), jobs)) {
		ids[i] = receipt.ID.String()
	}
	two := "[" + job(ids[:9000]...) + "," + job(ids[1000:sluice.MaxAfter+1]...) + "]"
	if r := s.ask("POST", "/jobs", two, "Authorization", "Bearer p"); r.status != 200 || !strings.Contains(r.text, "another request") || !strings.Contains(r.text, `"stored":1,`) {
		t.Errorf("a request whose jobs run after more than 10,000 others: %d %s", r.status, r.text)
	}
	slow := serveStore(t, stuck{memory.New(memory.Options{})}, httpapi.Options{Bounds: httpapi.Bounds{Timeout: 200 * time.Millisecond}}, producer)
	slow.problem(slow.ask("POST", "/jobs", job(first), "Authorization", "Bearer p"), 503, "timeout")
}

// TestAnExplanationReadsItsJobOnce counts the reads of a job that is explained, and of one that the caller must not know.
func TestAnExplanationReadsItsJobOnce(t *testing.T) {
	t.Parallel()
	reads, all := &calls{of: "job"}, new(calls)
	s := serveStore(t, observe.Store(memory.New(memory.Options{}), reads, all), httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleViewer},
		access.Caller{Name: "tenant", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	own, foreign := s.enqueue("mail", "acme"), s.enqueue("mail", "globex")
	for _, c := range []struct {
		as     string
		id     sluice.ID
		status int
	}{
		{"all", own, 200}, {"all", sluice.NewID(), 404}, {"tenant", own, 200}, {"tenant", foreign, 404}, {"tenant", sluice.NewID(), 404},
	} {
		before, beforeAll := reads.n.Load(), all.n.Load()
		r := s.ask("GET", "/jobs/"+c.id.String()+"/why", "", "Authorization", "Bearer "+c.as)
		if cost := reads.n.Load() - before; r.status != c.status || cost != 1 {
			t.Errorf("%s: the explanation of %s costs %d reads: %d %s; want 1 and %d", c.as, c.id, cost, r.status, r.text, c.status)
		}
		if calls := all.n.Load() - beforeAll; c.status == 404 && calls != 1 {
			t.Errorf("%s: no explanation of %s costs %d calls, want 1", c.as, c.id, calls)
		}
	}
}
