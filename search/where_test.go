package search_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/search"
)

// noon is the current time of the filters in these tests.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// retrying is a job to match with filters.
func retrying() sluice.Job {
	j := sluice.Job{ID: sluice.NewID(), State: sluice.StateQueued, Attempts: 3, Generation: 1, DueAt: noon.Add(5 * time.Minute), Error: "time out at bank 7", CreatedAt: noon.Add(-time.Hour)}
	j.Queue, j.Tenant, j.Key, j.Priority, j.Labels = "mail.welcome", "acme", "order-42", 2, map[string]string{"region": "eu west"}
	j.Batch = sluice.NewID()
	return j
}

func TestEachTermOfAFilterChooses(t *testing.T) {
	t.Parallel()
	job := retrying()
	for filter, want := range map[string]bool{
		"":                                 true,
		"state:queued":                     true,
		"state:retrying":                   true,
		"state:ready":                      false,
		"state:ready,retrying":             true,
		"-state:completed":                 true,
		"run:open":                         false,
		"-run:open":                        true,
		"ref:*":                            false,
		"queue:mail.welcome":               true,
		"queue:mail.*":                     true,
		"queue:mail":                       false,
		"queue:sms,mail.*":                 true,
		"-queue:mail.*":                    false,
		"tenant:acme":                      true,
		"tenant:ac*,b":                     true,
		"-tenant:acme,beta":                false,
		"key:order-42":                     true,
		`label.region:"eu west"`:           true,
		"batch:" + job.Batch.String():      true,
		"-batch:" + job.Batch.String():     false,
		"batch:" + sluice.NewID().String(): false,
		"label.region:eu*":                 true,
		"label.zone:eu":                    false,
		"-label.zone:eu":                   true,
		"attempts:>=3":                     true,
		"attempts:>3":                      false,
		"attempts:1..3":                    true,
		"attempts:..2":                     false,
		"priority:2":                       true,
		"priority:1,3":                     false,
		"due:<10m":                         true,
		"due:<1m":                          false,
		"due:12:00..12:30":                 true,
		"due:12:06..":                      false,
		"due:2026-11-25T12:05:00Z":         true,
		"age:>5m":                          true,
		"age:<5m":                          false,
		"age:30m..2h":                      true,
		"created:>-2h":                     true,
		"finished:>-1h":                    false,
		`error:~"time out"`:                true,
		"error:~bank,~insurance":           true,
		"error:bank":                       false,
		"holder:host*":                     false,
		`holder:""`:                        true,
		"fp:" + deadletter.Fingerprint(job.Queue, job.Error): true,
		"queue:mail.* tenant:acme attempts:>=3":              true,
		"queue:mail.* tenant:beta":                           false,
		"id:" + job.ID.String():                              true,
	} {
		q, err := search.Parse(filter, noon)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
		} else if got := q.Matches(job); got != want {
			t.Errorf("%s: matches %t, want %t", filter, got, want)
		}
	}
}

func TestAFilterThatBreaksARuleSaysWhich(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]string{
		"mail":                        "must be a term such as queue:mail",
		"colour:red":                  "is no field; the fields are state",
		"reason:capacity":             "ask `sluice why ID`",
		"payload.account.id:42":       "write label.NAME:VALUE",
		"worker:host-3":               "write holder:NAME",
		"sort:due":                    "ask for the oldest first",
		"run:ended":                   "must be open; jobs that have or had a run match ref:*",
		"run:~open":                   "only texts have parts",
		"state:asleep":                "must be one of queued",
		"attempts:many":               "must be a whole number",
		"attempts:..":                 "must have an end",
		"id:nobody":                   "must be an ID",
		"-id:01a1fb72":                "must be an ID",
		"batch:01a1fb72":              "must be an ID",
		"due:soon":                    "must be an instant",
		"age:-5m":                     "must be a duration",
		`error:"open`:                 "lacks its closing quote",
		`error:"a"b`:                  "must be followed by a blank",
		"queue:":                      "a value is missing",
		"queue:mail,":                 "a value is missing",
		"queue:m*l*":                  "may have one *",
		"state:~queued":               "only texts have parts",
		"label.:x":                    "is no field",
		"queue:a\x00":                 "NUL",
		strings.Repeat("id:a ", 2000): "must be at most",
		strings.Repeat("id:a* ", 200): "more than 100 terms",
	} {
		var invalid *sluice.InvalidError
		if _, err := search.Parse(filter, noon); !errors.As(err, &invalid) || invalid.Field != "where" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", filter, err, want)
		}
	}
}

func TestExamplesOfFieldsAreFilters(t *testing.T) {
	t.Parallel()
	for _, f := range search.Fields() {
		if _, err := search.Parse(f.Example, noon); err != nil {
			t.Errorf("%s: %v", f.Example, err)
		}
	}
}

func TestAListGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	store := buried(t, 25)
	for filter, want := range map[string]int{"": 50, "queue:mail": 25, "queue:mail,payments": 50, "queue:pay*": 25, "tenant:t1": 24, `error:~"no 7"`: 2, "queue:sms": 0, "queue:mail -queue:mail": 0} {
		q, err := search.Parse(filter, noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, oldestFirst := range []bool{false, true} {
			jobs, listed := 0, map[string][]string{}
			for _, j := range listed7(t, store, q, oldestFirst) {
				jobs, listed[j.Queue] = jobs+1, append(listed[j.Queue], j.ID.String())
			}
			if jobs != want {
				t.Errorf("%s: %d jobs, want %d", filter, jobs, want)
			}
			for queue, ids := range listed {
				if !oldestFirst {
					slices.Reverse(ids)
				}
				if !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(ids) {
					t.Errorf("%s: the jobs of %s, the oldest first: %t, are %s", filter, queue, oldestFirst, ids)
				}
			}
		}
	}
	for _, cursor := range []string{"x", "e30", "bnVsbA"} {
		if _, err := search.ReadList(t.Context(), store, search.Query{}, cursor, 1); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("cursor %s: %v, want it refused", cursor, err)
		}
	}
}

// listed7 lists all jobs of a query in pages of 7.
func listed7(t *testing.T, store sluice.Store, q search.Query, oldestFirst bool) (jobs []sluice.Job) {
	t.Helper()
	cursor, err := q.From(sluice.ID{}, oldestFirst)
	if err != nil {
		t.Fatal(err)
	}
	for first := true; cursor != "" || first; first = false {
		list, err := search.ReadList(t.Context(), store, q, cursor, 7)
		if err != nil || len(list.Jobs) > 7 {
			t.Fatalf("%+v: %d jobs: %v", q, len(list.Jobs), err)
		}
		jobs, cursor = append(jobs, list.Jobs...), list.Next
	}
	return jobs
}

func TestHeldJobsAreNotListedTheOldestFirst(t *testing.T) {
	t.Parallel()
	q := search.Query{Queue: "mail", Held: true}
	cursor, err := q.From(sluice.ID{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := search.ReadList(t.Context(), buried(t, 1), q, cursor, 7); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("the oldest held jobs first: %v, want it refused", err)
	}
}

func TestPatternsNarrowAQuery(t *testing.T) {
	t.Parallel()
	job, q := retrying(), search.Query{}
	for _, c := range []struct {
		queues, tenants []string
		want            bool
	}{{nil, nil, true}, {[]string{"mail.*"}, nil, true}, {[]string{"sms"}, nil, false}, {nil, []string{"beta", "ac*"}, true}, {[]string{"mail.*"}, []string{"beta"}, false}} {
		if got := q.OnlyQueues(c.queues).OnlyTenants(c.tenants).Matches(job); got != c.want {
			t.Errorf("%v %v: matches %t", c.queues, c.tenants, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, field := range search.Fields() {
		f.Add(field.Example)
	}
	f.Add(`-state:ready,dead error:~"a b" due:16:00..17:00`)
	f.Fuzz(func(t *testing.T, filter string) {
		q, err := search.Parse(filter, noon)
		if err != nil {
			if !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("%q: %v, want an invalid filter", filter, err)
			}
			return
		}
		if err := q.Check(); err != nil {
			t.Errorf("%q: %v", filter, err)
		}
		q.Matches(retrying())
	})
}

// TestOpenRunsAreLookedUp: only dispatched jobs are read, and compared.
func TestOpenRunsAreLookedUp(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string][]sluice.State{
		"run:open": {sluice.StateDispatched}, "-run:open": nil, "run:open state:dispatched,dead": {sluice.StateDispatched}, "state:dispatched run:open": {sluice.StateDispatched},
	} {
		q, err := search.Parse(filter, noon)
		if err != nil || !slices.Equal(q.States, want) {
			t.Errorf("%s looks up %v (%v), want %v", filter, q.States, err, want)
		}
		if got := q.Matches(sluice.Job{State: sluice.StateDispatched}); got != (want != nil) {
			t.Errorf("%s matches a dispatched job: %t", filter, got)
		}
	}
}

// TestACursorOfAnotherQueryReadsNoForeignQueue goes on with the places of lists that have other queues.
func TestACursorOfAnotherQueryReadsNoForeignQueue(t *testing.T) {
	t.Parallel()
	store := buried(t, 5)
	bounded := search.Query{}.OnlyQueues([]string{"mail"})
	for name, other := range map[string]search.Query{"one queue": {Queue: "payments"}, "all queues": {}} {
		list, err := search.ReadList(t.Context(), store, other, "", 2)
		if err != nil || list.Next == "" {
			t.Fatal(list, err)
		}
		got, err := search.ReadList(t.Context(), store, bounded, list.Next, 2)
		if got.Compared != 0 || len(got.Jobs) != 0 || got.Next != "" || err != nil && !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("the cursor of %s: %+v, %v, want nothing of another queue", name, got, err)
		}
	}
	page, err := search.ReadPage(t.Context(), store, bounded, search.Place{Queue: "alerts"}, 2)
	if err != nil || page.Compared != 0 || page.Next.Queue != "mail" {
		t.Errorf("the place before the only queue: %+v, %v, want to go on with mail", page, err)
	}
}
