package upkeep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

var operator = sluice.Act{By: "ada"}

// jobsOf lists the jobs of a queue, the newest first.
func jobsOf(t *testing.T, store sluice.Store, queue string) []sluice.Job {
	t.Helper()
	page, err := store.Jobs(t.Context(), sluice.JobFilter{Queue: queue, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return page.Jobs
}

func setSchedule(t *testing.T, store sluice.Store, name string, definition schedule.Definition) {
	t.Helper()
	if _, err := schedule.Set(t.Context(), store, name, definition, operator); err != nil {
		t.Fatal(err)
	}
}

// fragile is a payload checker that panics at a payload and at a schema.
type fragile struct{}

func (fragile) Compile(schema string) error { return fragile{}.Check("", []byte(schema)) }
func (fragile) Check(_ string, payload []byte) error {
	if strings.Contains(string(payload), "bad") {
		panic("no such luck")
	}
	return nil
}

func TestAPanicOfThePayloadCheckerRefusesOneFireAndEndsNoUpkeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: alwaysWell{}})
		for queue, schema := range map[string]string{"q": "{}", "other": `{"title":"bad"}`} {
			settings := sluice.DefaultSettings()
			settings.PayloadSchema = schema
			if _, err := client.EnsureQueue(t.Context(), queue, settings, operator); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(time.Minute)
		for _, name := range []string{"bad", "good"} {
			setSchedule(t, store, name, schedule.Definition{Queue: "q", At: []time.Time{at}, Payload: []byte(`"` + name + `"`)})
		}
		time.Sleep(2 * time.Minute)
		if _, err := upkeep.New(store, upkeep.Options{PayloadChecker: fragile{}}).Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if jobs := jobsOf(t, store, "q"); len(jobs) != 1 || jobs[0].Labels["schedule"] != "good" {
			t.Errorf("jobs %+v, want that of the good schedule", jobs)
		}
		bad, err := schedule.Read(t.Context(), store, "bad")
		if err != nil || bad.Progress.Refused != 1 || !strings.Contains(bad.Progress.Recent[0].Reason, "the payload checker panicked: no such luck") {
			t.Errorf("the bad schedule is %+v: %v", bad.Progress, err)
		}
	})
}

// alwaysWell is a payload checker that takes everything.
type alwaysWell struct{}

func (alwaysWell) Compile(string) error       { return nil }
func (alwaysWell) Check(string, []byte) error { return nil }

func TestASchedulesJobIsEnqueuedAtItsInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		time.Sleep(1500 * time.Millisecond)
		setSchedule(t, store, "often", schedule.Definition{Queue: "q", Every: 7 * time.Second, Overlap: schedule.QueueAll})
		time.Sleep(time.Minute)
		jobs := jobsOf(t, store, "q")
		if len(jobs) != 8 && len(jobs) != 9 {
			t.Fatalf("%d jobs in a minute, want one every 7 s", len(jobs))
		}
		for _, job := range jobs {
			if late := job.CreatedAt.Sub(job.CreatedAt.Truncate(time.Second)); job.CreatedAt.Unix()%7 != 0 || late > 10*time.Millisecond {
				t.Errorf("a job was enqueued at %s, want a multiple of 7 s", job.CreatedAt)
			}
		}
	})
}

func TestANewScheduleIsSeenWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		setSchedule(t, store, "rare", schedule.Definition{Queue: "other", Every: 365 * 24 * time.Hour})
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		time.Sleep(10100 * time.Millisecond)
		at := time.Now().Add(300 * time.Millisecond)
		setSchedule(t, store, "soon", schedule.Definition{Queue: "q", At: []time.Time{at}})
		time.Sleep(1300 * time.Millisecond)
		if jobs := jobsOf(t, store, "q"); len(jobs) != 1 || jobs[0].CreatedAt.Sub(at) > time.Second {
			t.Errorf("jobs: %+v, want one within 1 s of %s", jobs, at)
		}
	})
}

func TestTwoUpkeepsFireEachInstantOnceThroughAFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		setSchedule(t, store, "often", schedule.Definition{Queue: "q", Every: time.Second, Overlap: schedule.QueueAll, CatchUp: schedule.All})
		first, cancel := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		defer cancelSecond()
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(first) }()
		time.Sleep(500 * time.Millisecond)
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(second) }()
		time.Sleep(30 * time.Second)
		cancel()
		time.Sleep(30700 * time.Millisecond) // so that no fire falls on the end of the test
		seen := make(map[string]int)
		for _, job := range jobsOf(t, store, "q") {
			seen[job.ID.String()]++
			seen[job.ID.Time().String()]++
		}
		if len(seen) != 2*61 {
			t.Errorf("%d instants and jobs in 61 s, want 122", len(seen))
		}
	})
}

func TestSchedulesFireWhileAnotherProcessHasTheLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		tasks, err := presence.Given(store).Elect(t.Context(), "dead:1:x", []string{presence.TaskUpkeep}, time.Hour)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("leads %v, %v", tasks, err)
		}
		at := time.Now().Add(5 * time.Second)
		setSchedule(t, store, "soon", schedule.Definition{Queue: "q", At: []time.Time{at}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 3 {
			go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		}
		time.Sleep(time.Minute)
		jobs := jobsOf(t, store, "q")
		if len(jobs) != 1 || jobs[0].CreatedAt.Sub(at) > 100*time.Millisecond {
			t.Errorf("jobs %+v, want one at %s", jobs, at)
		}
	})
}

func TestAQuiescedUpkeepFiresNoSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		if _, err := presence.Instruct(t.Context(), store, presence.Target{All: true}, presence.WantedQuiesce, 0, sluice.Act{By: "ada", Reason: "deploy"}); err != nil {
			t.Fatal(err)
		}
		setSchedule(t, store, "often", schedule.Definition{Queue: "q", Every: 5 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		time.Sleep(time.Minute)
		if jobs := jobsOf(t, store, "q"); len(jobs) != 0 {
			t.Errorf("%d jobs, want none of a quiesced upkeep", len(jobs))
		}
	})
}

// Only the store's clock counts. The clock of upkeep's machine may be wrong, or be set.
func TestSchedulesFireByTheStoresClock(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]time.Duration{"store ahead": 10 * time.Minute, "store behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var off atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
				store := memory.New(memory.Options{Now: now})
				setSchedule(t, store, "often", schedule.Definition{Queue: "q", Every: 30 * time.Second, Overlap: schedule.QueueAll, CatchUp: schedule.None})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
				time.Sleep(time.Minute + 500*time.Millisecond)
				off.Store(int64(apart)) // sets one of the clocks while upkeep runs
				time.Sleep(15 * time.Minute)
				instants, late := make(map[int64]bool), 0
				for _, job := range jobsOf(t, store, "q") {
					at := job.ID.Time()
					if at.Unix()%30 != 0 || job.CreatedAt.Before(at) {
						t.Errorf("the job of %s was made at %s by the store's clock", at, job.CreatedAt)
					}
					if job.CreatedAt.Sub(at) > time.Second {
						late++
					}
					if instants[at.Unix()] {
						t.Errorf("two jobs of %s", at)
					}
					instants[at.Unix()] = true
				}
				if late > 2 {
					t.Errorf("%d fires were late, want those that the step skipped within the last minute", late)
				}
				if last := now().Truncate(30 * time.Second); !instants[last.Unix()] {
					t.Errorf("no job of %s among %d", last, len(instants))
				}
			})
		})
	}
}

// firstJobs is a store that takes a moment to fire schedules. It records how many fires each transaction has, and how
// many transactions are open at once.
type firstJobs struct {
	*memory.Store
	now, most atomic.Int64
	mu        sync.Mutex
	fired     []int
}

func (s *firstJobs) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (schedule.Fired, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(time.Millisecond)
	fired, err := s.Store.FireSchedules(ctx, limit, checker)
	s.mu.Lock()
	defer s.mu.Unlock()
	if fired.Schedules > 0 {
		s.fired = append(s.fired, fired.Schedules)
	}
	return fired, err
}

func TestManySchedulesOfOneInstantFireInFewTransactionsTheFirstOfThemSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &firstJobs{Store: memory.New(memory.Options{})}
		all := make([]schedule.Schedule, 8000)
		for i := range all {
			all[i] = schedule.Schedule{Name: fmt.Sprint("s", i), Definition: schedule.Definition{Queue: "q", Cron: "@hourly"}}
		}
		if _, err := schedule.Ensure(t.Context(), store, all, operator); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59*time.Minute + 30*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error)
		go func() { running <- upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-running; err != nil {
			t.Error(err)
		}
		sum := 0
		for _, n := range store.fired {
			sum += n
		}
		if sum != len(all) || store.fired[0] != 500 || slices.Max(store.fired) <= 500 || len(store.fired) > 17 {
			t.Errorf("schedules fired by transaction: %v, want 8,000 in at most 17, 500 of them first and more later", store.fired)
		}
		if most := store.most.Load(); most != 2 {
			t.Errorf("up to %d transactions beside each other, want 2", most)
		}
	})
}

func TestOnceFiresWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		setSchedule(t, store, "hourly", schedule.Definition{Queue: "q", Cron: "@hourly"})
		time.Sleep(time.Hour)
		done, err := upkeep.New(store, upkeep.Options{}).Once(t.Context(), false)
		if err != nil || done.Fired != 1 {
			t.Errorf("fired %d, %v, want 1", done.Fired, err)
		}
	})
}
