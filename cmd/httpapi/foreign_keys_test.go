package httpapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

// TestATokenForTenantsChangesNoJobOfAnotherTenant enqueues jobs with the key of a waiting job of another tenant, by each rule for
// duplicates, and in each form of a request.
func TestATokenForTenantsChangesNoJobOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, acmeCallers...)
	theirs := must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`"theirs"`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex", Key: "order-42"}})).ID
	was := must(s.client.Job(t.Context(), theirs))
	for _, on := range []string{"", "keep", "replace", "coalesce", "debounce"} {
		more := `,"key":"order-42"`
		if on != "" {
			more += `,"on_duplicate":"` + on + `"`
		}
		job := func() string { return acmeJob(sluice.NewID(), more) }
		as := []string{"Authorization", "Bearer tenant"}
		for form, r := range map[string]reply{
			"job":    s.ask("POST", "/jobs", job(), as...),
			"list":   s.ask("POST", "/jobs", "["+job()+","+acmeJob(sluice.NewID(), "")+"]", as...),
			"stream": s.ask("POST", "/jobs", job()+"\n"+acmeJob(sluice.NewID(), "")+"\n", slices.Concat(as, []string{"Content-Type", "application/x-ndjson"})...),
		} {
			if !strings.Contains(r.text, `"code":"invalid"`) || !strings.Contains(r.text, "a job of another tenant holds") || strings.Contains(r.text, theirs.String()) || strings.Contains(r.text, "globex") {
				t.Errorf("%s %q: the refusal is %d %s", form, on, r.status, r.text)
			}
			if want := map[string]int{"job": 422}[form]; want != 0 && r.status != want {
				t.Errorf("%s %q: status %d, want %d", form, on, r.status, want)
			}
			if form != "job" && !strings.Contains(r.text, `"stored":1,"duplicates":0,"refused":1`) {
				t.Errorf("%s %q: the other job is not stored: %s", form, on, r.text)
			}
		}
	}
	if is := must(s.client.Job(t.Context(), theirs)); is.State != sluice.StateQueued || string(is.Payload) != string(was.Payload) || !is.DueAt.Equal(was.DueAt) {
		t.Errorf("the job of the other tenant became %+v", is)
	}
	if r := s.ask("POST", "/jobs", acmeJob(theirs, ""), "Authorization", "Bearer tenant"); r.status != 200 {
		t.Errorf("the ID of the request is answered by %d %s", r.status, r.text)
	}
	for _, as := range []string{"all", "queue"} {
		if got := s.offer(as, acmeJob(sluice.NewID(), `,"key":"order-42"`)); got[0] != "duplicate "+theirs.String() {
			t.Errorf("%s: a duplicate gets %v, want the first job", as, got)
		}
	}
}

// TestAProgramWithATokenForTenantsIsRefusedAKey enqueues over HTTP from a Go program.
func TestAProgramWithATokenForTenantsIsRefusedAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, acmeCallers...)
	must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex", Key: "k"}}))
	store := must(remote.Open(t.Context(), strings.TrimSuffix(s.url, httpapi.Root), remote.Options{Token: "tenant"}))
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, on := range []sluice.OnDuplicate{sluice.Keep, sluice.Replace} {
		options := sluice.EnqueueOptions{Tenant: "acme", Key: "k", OnDuplicate: on}
		_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: options})
		if invalid, is := errors.AsType[*sluice.InvalidError](err); !is || invalid.Field != "key" {
			t.Errorf("%s: the error is %v, want an InvalidError of the key", on, err)
		}
	}
}

// TestHoldersOfKeysAreReadForDuplicatesAlone counts the jobs that the store reads for the keys of a caller with bounds.
func TestHoldersOfKeysAreReadForDuplicatesAlone(t *testing.T) {
	t.Parallel()
	reads := &calls{of: "job"}
	s := serveStore(t, observe.Store(memory.New(memory.Options{}), reads), httpapi.Options{}, acmeCallers...)
	for _, c := range []struct {
		as   string
		want int64
	}{{"all", 0}, {"queue", 0}, {"tenant", 1}} {
		key := `,"key":"` + c.as + `"`
		first := sluice.NewID()
		s.offer(c.as, acmeJob(first, key), acmeJob(sluice.NewID(), ""))
		if reads.n.Load() != 0 {
			t.Errorf("%s: new jobs cost %d reads, want 0", c.as, reads.n.Load())
		}
		got := s.offer(c.as, acmeJob(sluice.NewID(), key), acmeJob(sluice.NewID(), key), acmeJob(first, key))
		if want := "duplicate " + first.String(); !slices.Equal(got, []string{want, want, want}) || reads.n.Load() != c.want {
			t.Errorf("%s: duplicates of an own job get %v and cost %d reads, want %d", c.as, got, reads.n.Load(), c.want)
		}
		reads.n.Store(0)
	}
}

// TestAKeyOfADeletedJobStaysADuplicate sends a job again whose key lasts, after its job was deleted.
func TestAKeyOfADeletedJobStaysADuplicate(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, acmeCallers...)
	key := `,"key":"once","key_scope":"forever"`
	first := sluice.NewID()
	s.offer("tenant", acmeJob(first, key))
	act := sluice.Act{By: "test", Reason: "not needed"}
	if err := s.client.Cancel(t.Context(), []sluice.ID{first}, act); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), []sluice.ID{first}, act); err != nil {
		t.Fatal(err)
	}
	if got := s.offer("tenant", acmeJob(sluice.NewID(), key)); got[0] != "duplicate "+first.String() {
		t.Errorf("a job whose key lasts gets %v", got)
	}
}

// TestARequeueTellsNothingOfTheHolderOfAKey requeues a job of a tenant whose key went on to a job of another one.
func TestARequeueTellsNothingOfTheHolderOfAKey(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "tenant", Role: access.RoleOperator, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	enqueue := func(tenant string) sluice.ID {
		return must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant, Key: "k"}})).ID
	}
	own := enqueue("acme")
	if err := s.client.Cancel(t.Context(), []sluice.ID{own}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	theirs := enqueue("globex")
	body := `{"ids":["` + own.String() + `"],"reason":"again"}`
	r := s.ask("POST", "/jobs/retry", body, "Authorization", "Bearer tenant")
	if !strings.Contains(r.text, `"code":"duplicate"`) || strings.Contains(r.text, theirs.String()) {
		t.Errorf("a requeue gets %d %s", r.status, r.text)
	}
	if r := s.ask("POST", "/jobs/retry", body, "Authorization", "Bearer all"); !strings.Contains(r.text, theirs.String()) {
		t.Errorf("a requeue of a caller without bounds gets %d %s", r.status, r.text)
	}
}

// TestAScheduleTellsNothingOfTheHolderOfItsKey fires a schedule whose key a job of another tenant holds.
func TestAScheduleTellsNothingOfTheHolderOfItsKey(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "all", Role: access.RoleAdmin}, access.Caller{Name: "tenant", Role: access.RoleOperator, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	theirs := must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "globex", Key: "k"}})).ID
	as := []string{"Authorization", "Bearer tenant"}
	if r := s.ask("PATCH", "/schedules/nightly", `{"definition":{"queue":"mail","tenant":"acme","every":"24h","key":"k","payload":1},"reason":"x"}`, as...); r.status > 299 {
		t.Fatalf("set: %d %s", r.status, r.text)
	}
	for _, request := range [][]string{
		{"POST", "/schedules/nightly/fire", `{"reason":"now"}`},
		{"POST", "/schedules/nightly/trigger", `{"reason":"now"}`},
		{"GET", "/schedules/nightly", ""},
		{"GET", "/schedules", ""},
	} {
		r := s.ask(request[0], request[1], request[2], as...)
		if r.status > 299 || strings.Contains(r.text, theirs.String()) {
			t.Errorf("%s %s: %d %s", request[0], request[1], r.status, r.text)
		}
	}
	if got := must(schedule.Given(s.store).Schedule(t.Context(), "nightly")); len(got.Progress.Recent) != 2 || got.Progress.Recent[0].Job != theirs {
		t.Errorf("the schedule fired %+v, want a duplicate of %s", got.Progress.Recent, theirs)
	}
}
