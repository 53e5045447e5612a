package httpapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
)

// acmeCallers are callers with and without bounds.
var acmeCallers = []access.Caller{
	{Name: "all", Role: access.RoleProducer},
	{Name: "queue", Role: access.RoleProducer, Bounds: access.Bounds{Queues: []string{"mail"}}},
	{Name: "tenant", Role: access.RoleProducer, Bounds: access.Bounds{Tenants: []string{"acme"}}},
}

// offer sends a list of jobs, and returns what became of each: its id, or the code of its problem.
func (s *served) offer(as string, jobs ...string) (out []string) {
	s.Helper()
	type answer struct{ Results []httpapi.Enqueued }
	for _, r := range get[answer](s, "POST", "/jobs", "["+strings.Join(jobs, ",")+"]", "Authorization", "Bearer "+as).Results {
		switch {
		case r.Error != nil:
			out = append(out, r.Error.Code)
		case r.Duplicate:
			out = append(out, "duplicate "+r.ID.String())
		default:
			out = append(out, r.ID.String())
		}
	}
	return out
}

// acmeJob is the text of a job of acme. More are its other fields.
func acmeJob(id sluice.ID, more string, after ...sluice.ID) string {
	text := fmt.Sprintf(`{"queue":"mail","tenant":"acme","payload":1,"id":"%s"%s`, id, more)
	if len(after) > 0 {
		text += `,"after":["` + after[0].String() + `"` + strings.Repeat(`,"`+after[len(after)-1].String()+`"`, len(after)-1) + `]`
	}
	return text + "}"
}

// TestJobsOfAListRunAfterEachOther sends lists in which jobs run after others of the same list, in any order. Callers with bounds are
// answered as others are.
func TestJobsOfAListRunAfterEachOther(t *testing.T) {
	t.Parallel()
	for _, caller := range acmeCallers {
		s := serve(t, httpapi.Options{}, acmeCallers...)
		a, b, c, d := sluice.NewID(), sluice.NewID(), sluice.NewID(), sluice.NewID()
		jobs := []string{acmeJob(d, `,"order_key":"o"`), acmeJob(c, "", b, a), acmeJob(b, `,"order_key":"o"`, a), acmeJob(a, "")}
		want := []string{d.String(), c.String(), b.String(), a.String()}
		if got := s.offer(caller.Name, jobs...); !slices.Equal(got, want) {
			t.Errorf("%s: a list gets %v, want %v", caller.Name, got, want)
		}
		for i := range want {
			want[i] = "duplicate " + want[i]
		}
		if got := s.offer(caller.Name, jobs...); !slices.Equal(got, want) {
			t.Errorf("%s: a list that is sent again gets %v, want %v", caller.Name, got, want)
		}
		if job := must(s.client.Job(t.Context(), c)); len(job.After) != 2 || !slices.Contains(job.After, a) || !slices.Contains(job.After, b) {
			t.Errorf("%s: a job runs after %v, want %s and %s", caller.Name, job.After, a, b)
		}
		e, f := sluice.NewID(), sluice.NewID()
		if got := s.offer(caller.Name, acmeJob(e, "", f), acmeJob(f, "", e)); !slices.Equal(got, []string{"invalid", "invalid"}) {
			t.Errorf("%s: jobs that wait for each other get %v", caller.Name, got)
		}
		if got := s.offer(caller.Name, acmeJob(e, `,"priority":99`), acmeJob(f, "", e)); !slices.Equal(got, []string{"invalid", "not_found"}) {
			t.Errorf("%s: a job behind a refused one gets %v", caller.Name, got)
		}
		lines := acmeJob(e, "", f) + "\n" + acmeJob(f, "") + "\n"
		r := s.ask("POST", "/jobs", lines, "Authorization", "Bearer "+caller.Name, "Content-Type", "application/x-ndjson")
		if r.status != 200 || !strings.Contains(r.text, `"stored":2`) {
			t.Errorf("%s: lines of a stream get %d %s", caller.Name, r.status, r.text)
		}
	}
}

// TestAListKeepsTheOrderOfItsOrderKey stores a job behind another of its list. One with the same order key stays behind it.
func TestAListKeepsTheOrderOfItsOrderKey(t *testing.T) {
	t.Parallel()
	for _, caller := range acmeCallers {
		s := serve(t, httpapi.Options{}, acmeCallers...)
		a, b, c := sluice.NewID(), sluice.NewID(), sluice.NewID()
		s.offer(caller.Name, acmeJob(b, `,"order_key":"o"`, a), acmeJob(c, `,"order_key":"o"`), acmeJob(a, ""))
		if job := must(s.client.Job(t.Context(), c)); job.BlockedBy != b {
			t.Errorf("%s: the second job in order waits for %s, want %s", caller.Name, job.BlockedBy, b)
		}
	}
}

// TestAListLetsNoJobRunAfterAForeignOne gives a job of a list the ID, or the key, of a foreign job. A job behind it is refused, as one
// that runs after what is not stored.
func TestAListLetsNoJobRunAfterAForeignOne(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, acmeCallers...)
	enqueue := func(queue, tenant, key string) sluice.ID {
		o := sluice.EnqueueOptions{Tenant: tenant, Key: key}
		return must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: o})).ID
	}
	theirs, own := enqueue("sms", "globex", ""), enqueue("mail", "acme", "own")
	enqueue("mail", "globex", "k")
	for _, as := range []string{"queue", "tenant"} {
		for name, first := range map[string]string{"valid": acmeJob(theirs, ""), "refused": acmeJob(theirs, `,"priority":99`), "twice": acmeJob(theirs, "") + "," + acmeJob(theirs, "")} {
			behind := sluice.NewID()
			if got := s.offer(as, acmeJob(behind, "", theirs), first); got[0] != "not_found" {
				t.Errorf("%s, %s: a job behind the foreign job %s gets %v", as, name, theirs, got)
			}
		}
	}
	first, behind := sluice.NewID(), sluice.NewID()
	if got := s.offer("tenant", acmeJob(first, `,"key":"k"`), acmeJob(behind, "", first)); !slices.Equal(got, []string{"invalid", "not_found"}) {
		t.Errorf("a job behind a duplicate of a foreign job gets %v", got)
	}
	again := acmeJob(first, `,"key":"k"`) // a second job with the ID is not stored together with the job behind
	if got := s.offer("tenant", acmeJob(first, `,"priority":99`), again, acmeJob(behind, "", first)); got[2] != "not_found" {
		t.Errorf("a job behind the second job of an ID gets %v", got)
	}
	for _, caller := range acmeCallers {
		first, behind := sluice.NewID(), sluice.NewID()
		rule := fmt.Sprintf(`,"after_failures":{"%s":"run"}`, first)
		if got := s.offer(caller.Name, acmeJob(behind, rule, first), acmeJob(first, `,"key":"own"`)); !slices.Equal(got, []string{behind.String(), "duplicate " + own.String()}) {
			t.Errorf("%s: a job behind a duplicate of an own job gets %v", caller.Name, got)
			continue
		}
		if job := must(s.client.Job(t.Context(), behind)); !slices.Equal(job.After, []sluice.ID{own}) || job.AfterFailures[own] != sluice.FailureRuns {
			t.Errorf("%s: a job behind a duplicate runs after %v, %v, want %s", caller.Name, job.After, job.AfterFailures, own)
		}
	}
}

// overtaking stores a foreign job when a list begins to be stored.
type overtaking struct {
	once sync.Once
	do   func()
}

func (o *overtaking) Begin(ctx context.Context, call *observe.Call) context.Context {
	if call.Name == "enqueue" {
		o.once.Do(o.do)
	}
	return ctx
}

func (*overtaking) End(context.Context, *observe.Call) {}

// TestAListLetsNoJobRunAfterOneThatBecomesForeign stores a foreign job with the ID of a job of a list, after the list came.
func TestAListLetsNoJobRunAfterOneThatBecomesForeign(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"valid": "", "refused": `,"priority":99`} {
		inner, id := memory.New(memory.Options{}), sluice.NewID()
		foreign := sluice.NewJob{Queue: "sms", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{ID: id, Tenant: "globex"}}
		overtake := &overtaking{do: func() { must(sluice.NewClient(inner, sluice.ClientOptions{}).Enqueue(t.Context(), foreign)) }}
		s := serveStore(t, observe.Store(inner, overtake), httpapi.Options{}, acmeCallers...)
		other, behind := sluice.NewID(), sluice.NewID()
		if got := s.offer("queue", acmeJob(id, more), acmeJob(other, ""), acmeJob(behind, "", id)); got[2] != "not_found" {
			t.Errorf("%s: a job behind one that became foreign gets %v", name, got)
		}
	}
}

// TestAListIsStoredInFewSteps counts the calls of the store. A list is stored at once, but for jobs behind others of it.
func TestAListIsStoredInFewSteps(t *testing.T) {
	t.Parallel()
	for _, caller := range acmeCallers {
		steps, reads := &calls{of: "enqueue"}, &calls{of: "job"}
		s := serveStore(t, observe.Store(memory.New(memory.Options{}), steps, reads), httpapi.Options{}, acmeCallers...)
		first, stored := sluice.NewID(), s.enqueue("mail", "acme")
		jobs := []string{acmeJob(first, "")}
		for range 50 {
			jobs = append(jobs, acmeJob(sluice.NewID(), "", first), acmeJob(sluice.NewID(), "", stored), acmeJob(sluice.NewID(), ""))
		}
		before := steps.n.Load()
		s.offer(caller.Name, jobs...)
		wantSteps, wantReads := int64(2), int64(2)
		if caller.None() {
			wantSteps, wantReads = 1, 0
		}
		if cost := steps.n.Load() - before; cost != wantSteps || reads.n.Load() != wantReads {
			t.Errorf("%s: a list costs %d steps and %d reads, want %d and %d", caller.Name, cost, reads.n.Load(), wantSteps, wantReads)
		}
	}
}
