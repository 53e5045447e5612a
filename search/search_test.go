package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/store/memory"
)

// buried returns a store with dead letters of two queues. The errors end with the job's number.
func buried(t *testing.T, each int) sluice.Store {
	t.Helper()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, queue := range []string{"mail", "payments"} {
		for i := range each {
			tenant := fmt.Sprintf("t%d", i%2)
			if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}}); err != nil {
				t.Fatal(err)
			}
		}
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: queue, Limit: each, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != each {
			t.Fatalf("claimed %d: %v", len(claimed.Jobs), err)
		}
		for i, c := range claimed.Jobs {
			end := sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventBury, Error: fmt.Sprintf("bank said no %d", i)}
			if errs, err := store.Settle(t.Context(), []sluice.Settlement{end}); errors.Join(append(errs, err)...) != nil {
				t.Fatal(errs, err)
			}
		}
	}
	return store
}

func TestEachFieldOfAQueryNarrowsIt(t *testing.T) {
	t.Parallel()
	store := buried(t, 10)
	hour := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		query search.Query
		want  int
	}{
		"nothing":            {search.Query{}, 20},
		"queue":              {search.Query{Queue: "mail"}, 10},
		"tenant":             {search.Query{Tenant: "t1"}, 10},
		"state":              {search.Query{States: []sluice.State{sluice.StateQueued}}, 0},
		"error":              {search.Query{Error: "no 7"}, 2},
		"fingerprint":        {search.Query{Fingerprint: deadletter.Fingerprint("payments", "bank said no 3")}, 10},
		"other fingerprint":  {search.Query{Fingerprint: deadletter.Fingerprint("payments", "no route")}, 0},
		"attempts":           {search.Query{MinAttempts: 2}, 0},
		"created from":       {search.Query{CreatedFrom: hour}, 0},
		"created before":     {search.Query{CreatedBefore: hour}, 20},
		"due from":           {search.Query{DueFrom: hour}, 0},
		"there":              {search.Query{ThereAt: hour}, 20},
		"there, long before": {search.Query{ThereAt: hour.Add(-2 * time.Hour)}, 0},
	} {
		found, err := search.Preview(t.Context(), store, c.query, 1)
		if err != nil || found.Matched != c.want || found.More || len(found.Jobs) != min(c.want, 1) {
			t.Errorf("%s: %d matched, want %d; %d samples, more %t: %v", name, found.Matched, c.want, len(found.Jobs), found.More, err)
		}
	}
}

func TestAGroupChoosesTheJobsOfItsQueues(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, queue := range []string{"mail", "mail-x", "mail.a", "mail.b", "mailer", "payments"} {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	for group, want := range map[string]string{"mail.*": "mail.a mail.b", "*": "mail mail-x mail.a mail.b mailer payments", "sms.*": ""} {
		found, err := search.Jobs(t.Context(), store, search.Query{Queue: group}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var queues []string
		for _, job := range found.Jobs {
			queues = append(queues, job.Queue)
		}
		if got := strings.Join(queues, " "); got != want {
			t.Errorf("%s has jobs in %q, want %q", group, got, want)
		}
	}
}

func TestSearchStopsWhenItHasEnoughAndSaysSo(t *testing.T) {
	t.Parallel()
	store := buried(t, 10)
	for limit, want := range map[int]struct {
		found int
		more  bool
	}{5: {5, true}, 20: {20, false}, 0: {20, false}} {
		found, err := search.Jobs(t.Context(), store, search.Query{}, limit)
		if err != nil || len(found.Jobs) != want.found || found.More != want.more {
			t.Errorf("with limit %d it found %d, more %t: %v", limit, len(found.Jobs), found.More, err)
		}
	}
	for _, limit := range []int{-1, 10_001} {
		if _, err := search.Jobs(t.Context(), store, search.Query{}, limit); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("limit %d: %v, want it refused", limit, err)
		}
	}
	if _, err := search.Jobs(t.Context(), store, search.Query{Fingerprint: "xyz"}, 1); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a fingerprint of three letters: %v, want it refused", err)
	}
}

func ExampleJobs() {
	store := memory.New(memory.Options{})
	found, err := search.Jobs(context.Background(), store, search.Query{Queue: "payments", Error: "connection refused"}, 10)
	fmt.Println(found.Matched, err)
	// Output: 0 <nil>
}

// oddOnes returns a store with jobs of two queues, the odd ones among which have the priority 1.
func oddOnes(t *testing.T, each int) sluice.Store {
	t.Helper()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, queue := range []string{"mail", "payments"} {
		jobs := make([]sluice.NewJob, each)
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Priority: i % 2}}
		}
		if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestAListComparesAsManyJobsAsItSays(t *testing.T) {
	t.Parallel()
	store := oddOnes(t, 6000)
	for _, limit := range []int{1, 50, 1000} {
		found, err := search.ReadList(t.Context(), store, search.Query{Error: "none has it"}, "", limit)
		if err != nil || found.Compared != 10_000 || len(found.Jobs) != 0 || found.Next == "" {
			t.Errorf("limit %d: compared %d, found %d, next %q, %v; want 10,000, none and another part", limit, found.Compared, len(found.Jobs), found.Next, err)
		}
	}
	if found, err := search.ReadList(t.Context(), store, search.Query{}, "", 50); err != nil || found.Compared != 50 || len(found.Jobs) != 50 {
		t.Errorf("without a filter: compared %d, found %d, %v; want 50", found.Compared, len(found.Jobs), err)
	}
}

// lookingUp counts what is read of a store.
type lookingUp struct {
	sluice.Store
	lists, jobs int
}

func (s *lookingUp) Jobs(ctx context.Context, f sluice.JobFilter) (sluice.Page, error) {
	s.lists++
	return s.Store.Jobs(ctx, f)
}

func (s *lookingUp) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	s.jobs++
	return s.Store.Job(ctx, id)
}

func TestJobsThatAQueryNamesAreLookedUp(t *testing.T) {
	t.Parallel()
	store := &lookingUp{Store: oddOnes(t, 100)}
	all, err := search.Jobs(t.Context(), store, search.Query{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	mail, payment := all.Jobs[3], slices.MaxFunc(all.Jobs, func(a, b sluice.Job) int { return strings.Compare(a.Queue, b.Queue) })
	mail, err = store.Job(t.Context(), mail.ID)
	if err != nil {
		t.Fatal(err)
	}
	names := fmt.Sprintf("%s,%s,%s,%s", payment.ID, mail.ID, mail.ID, sluice.NewID())
	for filter, want := range map[string]string{
		"id:" + names:                               mail.Queue + " " + payment.Queue,
		"queue:mail id:" + names:                    "mail",
		"-queue:mail id:" + names:                   payment.Queue,
		"id:" + names + " -id:" + mail.ID.String():  payment.Queue,
		"state:completed id:" + names:               "",
		"id:" + sluice.NewID().String():             "",
		fmt.Sprintf("id:%s priority:7", payment.ID): "",
	} {
		q, err := search.Parse(filter, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		store.lists, store.jobs = 0, 0
		found, err := search.Preview(t.Context(), store, q, 5)
		var queues []string
		for _, job := range found.Jobs {
			queues = append(queues, job.Queue)
		}
		slices.Sort(queues)
		if got := strings.Join(queues, " "); err != nil || got != want || found.More || found.Matched != len(found.Jobs) {
			t.Errorf("%s: found jobs of %q, more %t, matched %d, %v; want %q", filter, got, found.More, found.Matched, err, want)
		}
		if store.lists > 0 || store.jobs > 3 {
			t.Errorf("%s: %d lists and %d jobs were read, want 3 jobs at most", filter, store.lists, store.jobs)
		}
	}
}

// namedOnes is a query that names so many jobs of the priority 1.
func namedOnes(t *testing.T, store sluice.Store, jobs int) search.Query {
	t.Helper()
	one, err := search.Parse("priority:1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	found, err := search.Jobs(t.Context(), store, one, jobs)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, job := range found.Jobs {
		ids = append(ids, job.ID.String())
	}
	q, err := search.Parse("id:"+strings.Join(ids, ","), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAListHasEachJobOnceInWhateverParts(t *testing.T) {
	t.Parallel()
	store := oddOnes(t, 700)
	one, err := search.Parse("priority:1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	two, err := search.Parse("priority:1 queue:mail,payments", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	named := namedOnes(t, store, 100)
	for name, q := range map[string]search.Query{"all queues": one, "two queues": two, "a queue": {Queue: "mail", Terms: one.Terms}, "named": named} {
		for _, oldest := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the oldest first %t", name, oldest), func(t *testing.T) {
				want := 700
				if q.Queue != "" {
					want = 350
				}
				if name == "named" {
					want = 100
				}
				from, err := q.From(sluice.ID{}, oldest)
				if err != nil {
					t.Fatal(err)
				}
				seen := make(map[sluice.ID]bool)
				for part := 0; part == 0 || from != ""; part++ {
					found, err := search.ReadList(t.Context(), store, q, from, 40)
					if err != nil || len(found.Jobs) > 40 || part > 100 {
						t.Fatalf("part %d has %d jobs: %v", part, len(found.Jobs), err)
					}
					for _, job := range found.Jobs {
						if seen[job.ID] || job.Priority != 1 {
							t.Fatalf("part %d has job %s of priority %d, which came before: %t", part, job.ID, job.Priority, seen[job.ID])
						}
						seen[job.ID] = true
					}
					from = found.Next
				}
				if len(seen) != want {
					t.Errorf("the parts have %d jobs, want %d", len(seen), want)
				}
			})
		}
	}
}
