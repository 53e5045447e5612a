package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
)

// crowdOfLookers are processes that serve one queue, each with a store of its own. They claim only when they get a
// signal.
type crowdOfLookers struct {
	*testing.T
	stores []*postgres.Store
	client *sluice.Client // a client of a process that only enqueues
	limit  int
	claims atomic.Int64 // how often the processes claimed
	got    chan sluice.ID
}

func newCrowdOfLookers(t *testing.T, size, limit int) *crowdOfLookers {
	t.Helper()
	url := migrated.Copy(t)
	c := &crowdOfLookers{T: t, limit: limit, got: make(chan sluice.ID, 10_000)}
	for i := range size {
		store := openStore(t, url)
		c.stores = append(c.stores, store)
		if _, err := presence.Given(store).Heartbeat(t.Context(), presence.Holder{ID: fmt.Sprintf("h:%d:x", i), Role: presence.RoleWorker, Queues: []string{"q"}, Slots: limit}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() { stop(); watching.Wait() })
	var hear sync.WaitGroup
	for i, store := range c.stores {
		if err := store.CountCrowds(ctx); err != nil {
			t.Fatal(err)
		}
		hear.Add(1)
		look := make(chan struct{}, 1)
		heard := sync.OnceFunc(hear.Done)
		watching.Go(func() {
			_ = store.Watch(ctx, func(signal sluice.Signal) {
				if signal.Hearing == sluice.HearsAll {
					heard()
				}
				if signal.Queue == "q" {
					select {
					case look <- struct{}{}:
					default:
					}
				}
			})
		})
		watching.Go(func() { c.serve(ctx, i, look) })
	}
	hear.Wait()
	c.client = sluice.NewClient(openStore(t, url), sluice.ClientOptions{})
	return c
}

// put enqueues a job.
func (c *crowdOfLookers) put() {
	c.Helper()
	if _, err := c.client.Enqueue(c.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`1`)}); err != nil {
		c.Fatal(err)
	}
}

// serve claims whenever a signal comes, and goes on while a claim is full.
func (c *crowdOfLookers) serve(ctx context.Context, i int, look chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
		}
		for got := c.limit; got == c.limit; {
			c.claims.Add(1)
			claimed, err := c.stores[i].Claim(ctx, sluice.ClaimRequest{
				Queue: "q", Limit: c.limit, Holder: fmt.Sprintf("h:%d:x", i), Lease: time.Hour, Token: sluice.NewToken(),
			})
			if err != nil {
				if ctx.Err() == nil {
					c.Error(err)
				}
				return
			}
			got = len(claimed.Jobs)
			for _, job := range claimed.Jobs {
				c.got <- job.ID
			}
		}
	}
}

// TestJobsAreTakenThoughProcessesSpareEachOtherTheirLooks enqueues jobs at varying intervals. Many processes serve the
// queue, and none polls. Every job must be taken, although processes skip claims after another process has taken all
// jobs.
func TestJobsAreTakenThoughProcessesSpareEachOtherTheirLooks(t *testing.T) {
	t.Parallel()
	const size, jobs = 12, 400
	c := newCrowdOfLookers(t, size, 3)
	for range jobs {
		c.put()
		if rand.IntN(3) == 0 {
			time.Sleep(rand.N(15 * time.Millisecond)) // varies how far the claims are when the next job comes
		}
	}
	for n := range jobs {
		select {
		case <-c.got:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d jobs were taken, and nobody looks any more", n, jobs)
		}
	}
	t.Logf("%d looks of %d processes for %d jobs", c.claims.Load(), size, jobs)
}

// TestJobOfACrowdedQueueWakesFewProcesses enqueues one job at a time. On a busy machine, all processes may claim before
// they hear that the job is taken, but not each time.
func TestJobOfACrowdedQueueWakesFewProcesses(t *testing.T) {
	t.Parallel()
	const size, tries = 30, 100
	c := newCrowdOfLookers(t, size, 3)
	for range tries {
		before := c.claims.Load()
		c.put()
		select {
		case <-c.got:
		case <-time.After(time.Minute):
			t.Fatal("nobody takes the job")
		}
		time.Sleep(postgres.MostPutOff) // until every process that claims has claimed
		if n := c.claims.Load() - before; n < size/2 {
			t.Logf("%d of %d processes looked", n, size)
			return
		}
	}
	t.Errorf("most of %d processes look for each job", size)
}

// TestProcessThatSparesOthersTheirLooksSignalsWhatCameMeanwhile makes a process take all jobs of a queue. Another job
// comes before the others hear of the taking.
func TestProcessThatSparesOthersTheirLooksSignalsWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	c := newCrowdOfLookers(t, 6, 3)
	conn, err := pgx.ConnectConfig(t.Context(), c.stores[0].Pool().Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	sender := c.stores[0].Sender()
	if _, err := conn.Exec(t.Context(), "listen sluice"); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"select pg_notify('sluice', 'another queue q')", "select pg_notify('sluice_taken', '" + sender + " q')"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for {
		heard, err := conn.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if heard.Payload == sender+" queue q" {
			return
		}
	}
}

// TestProcessThatHearsNothingSparesNobodyTheirLooks checks that only a process that hears signals reports taken jobs. A
// process that hears none would miss jobs that came meanwhile, and the others would skip them, too.
func TestProcessThatHearsNothingSparesNobodyTheirLooks(t *testing.T) {
	t.Parallel()
	store := newCrowdOfLookers(t, 6, 3).stores[0]
	if !store.ReportsTaken("q") {
		t.Error("a process that hears tells nobody that it has taken the jobs")
	}
	store.Hear(false)
	if store.ReportsTaken("q") {
		t.Error("a process that hears nothing tells the others to drop their looks")
	}
}

// TestSignalIsMissedHoweverTheProcessesAreCounted counts the processes of a queue after a claim took all jobs, and
// before the others hear of it.
func TestSignalIsMissedHoweverTheProcessesAreCounted(t *testing.T) {
	t.Parallel()
	for _, counts := range [][]int{nil, {9}, {0}, {0, 9}, {0, 0}} {
		if !postgres.MissesWhatCame(9, counts...) {
			t.Errorf("counted as %v, a signal that came meanwhile is not sent anew", counts)
		}
	}
}

func TestLooksWaitForTheNextSignalWhileSignalsFollowEachOther(t *testing.T) {
	t.Parallel()
	anew, least, tells := postgres.FollowUp(1000)
	if !anew || least < postgres.BusyRest || tells {
		t.Errorf("delays begin anew: %t, the shortest is %s, a claim tells that all is taken: %t", anew, least, tells)
	}
}

// TestEnqueuesIntoManyQueuesCarryFewSignals: each statement that notifies wakes every process that listens, whatever
// queues it serves.
func TestEnqueuesIntoManyQueuesCarryFewSignals(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	carried := postgres.Carries(1000)
	if most := postgres.HearAtOnce + int(time.Since(begun)/postgres.HearInterval) + 1; carried > most {
		t.Errorf("%d of 1,000 enqueues carry a signal, want at most %d", carried, most)
	}
}
