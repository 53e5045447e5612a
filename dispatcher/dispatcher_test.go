package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

var quiet = slog.New(slog.DiscardHandler)

// bank is a store in memory and an engine, in a bubble of fake time. Its methods run dispatchers and upkeep on both.
type bank struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	engine *scripted
	stop   context.CancelFunc
}

func inBank(t *testing.T, test func(b *bank)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		b := &bank{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), engine: newScripted()}
		b.set(func(*sluice.Settings) {})
		test(b)
		if b.stop != nil {
			b.stop()
			synctest.Wait()
		}
	})
}

// set stores settings of the queue, which the engine runs.
func (b *bank) set(change func(*sluice.Settings)) {
	b.Helper()
	settings := sluice.DefaultSettings()
	settings.Engine, settings.Audit = "temporal", sluice.AuditFull
	change(&settings)
	_, err := b.client.ChangeSettings(b.Context(), "payment", sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		*s = settings
		return nil
	})
	if errors.Is(err, sluice.ErrNotFound) {
		_, err = b.client.EnsureQueue(b.Context(), "payment", settings, sluice.Act{By: "test"})
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bank) enqueue(n int, options sluice.EnqueueOptions) []sluice.ID {
	b.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "payment", Payload: []byte(`{"cents":1}`), EnqueueOptions: options}
	}
	receipts, err := b.client.EnqueueMany(b.Context(), jobs)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]sluice.ID, n)
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

// dispatch runs a dispatcher until ctx ends.
func (b *bank) dispatch(ctx context.Context) {
	go func() {
		_ = dispatcher.New(b.store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet}).Run(ctx)
	}()
}

// run starts dispatchers, and an upkeep that follows runs. They run until the test ends or calls stop.
func (b *bank) run(dispatchers int) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	b.stop = stop
	engines := map[string]engine.Engine{"temporal": b.engine}
	for range dispatchers {
		go func() { _ = dispatcher.New(b.store, dispatcher.Options{Engines: engines, Logger: quiet}).Run(ctx) }()
	}
	go func() { _ = upkeep.New(b.store, upkeep.Options{Engines: engines, Logger: quiet}).Run(ctx) }()
}

func (b *bank) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// count counts the jobs in a state.
func (b *bank) count(state sluice.State) int {
	b.Helper()
	page, err := b.client.Jobs(b.Context(), sluice.JobFilter{Queue: "payment", States: []sluice.State{state}, Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	return len(page.Jobs)
}

func (b *bank) want(state sluice.State, n int) {
	b.Helper()
	if got := b.count(state); got != n {
		b.Fatalf("%d jobs are %s, want %d", got, state, n)
	}
}

func (b *bank) job(id sluice.ID) sluice.Job {
	b.Helper()
	job, err := b.client.Job(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// unburnt checks that no job has lost an attempt.
func (b *bank) unburnt(ids []sluice.ID) {
	b.Helper()
	for _, id := range ids {
		if job := b.job(id); job.Attempts != 0 {
			b.Fatalf("job %s has %d attempts, want none", id, job.Attempts)
		}
	}
}

func TestDueJobsAreDispatchedAndFollowedToTheirEnd(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(3, sluice.EnqueueOptions{})
		later := b.enqueue(1, sluice.EnqueueOptions{Delay: time.Hour})
		b.run(1)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 3)
		for _, id := range ids {
			if job := b.job(id); job.Ref != "payment-"+id.String() {
				b.Errorf("the run is called %s", job.Ref)
			}
		}
		b.engine.end(engine.Completed)
		b.wait(4 * time.Second)
		b.want(sluice.StateCompleted, 3)
		if job := b.job(ids[0]); string(job.Result) != `"done"` {
			b.Errorf("the result is %s", job.Result)
		}
		if job := b.job(later[0]); job.State != sluice.StateQueued {
			b.Errorf("a job that is not due is %s", job.State)
		}
		b.unburnt(ids)
	})
}

func TestRunWhoseResultIsTooLargeCompletesItsJobWithoutIt(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(1, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(3 * time.Second)
		b.engine.result = strings.Repeat("1", sluice.MaxResultBytes+1)
		b.engine.end(engine.Completed)
		b.wait(4 * time.Second)
		if job := b.job(ids[0]); job.State != sluice.StateCompleted || job.Result != nil {
			b.Errorf("the job is %s, with a result of %d bytes", job.State, len(job.Result))
		}
	})
}

func TestJobClaimedAheadIsDelayedByItsEngineUntilItIsDue(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.ClaimAhead = time.Minute })
		due := time.Now().Add(50 * time.Second)
		b.enqueue(1, sluice.EnqueueOptions{DueAt: due})
		b.run(1)
		b.wait(2 * time.Second)
		b.want(sluice.StateDispatched, 1)
		for _, delay := range b.engine.delays {
			if delay < 48*time.Second || delay > 50*time.Second {
				b.Errorf("the run is delayed by %s", delay)
			}
		}
	})
}

func TestRunThatTheEngineRefusesBuriesItsJobAlone(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(5, sluice.EnqueueOptions{})
		b.engine.say(func(run engine.Run) (error, bool) {
			if run.Job == ids[2] {
				return engine.ErrRefused, false
			}
			return nil, true
		})
		b.run(1)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 4)
		if job := b.job(ids[2]); job.State != sluice.StateDead || !strings.Contains(job.Error, "refused") {
			b.Errorf("the refused one is %s: %s", job.State, job.Error)
		}
	})
}

func TestAnswerThatIsLostStartsNoSecondRun(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(10, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, true))
		b.run(2)
		b.wait(2 * time.Second)
		b.want(sluice.StateDispatched, 0)
		b.engine.say(nil)
		b.wait(20 * time.Second)
		b.want(sluice.StateDispatched, 10)
		b.unburnt(ids)
		if n := b.engine.most(); n != 1 {
			b.Errorf("a run was started %d times", n)
		}
	})
}

func TestOutageCostsNoAttemptsAndWorkGoesOnWithinAProbe(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.Batch = 10 })
		ids := b.enqueue(100, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, false))
		b.run(1)
		b.wait(10 * time.Minute)
		if held := b.count(sluice.StateClaimed); held > 10 {
			b.Errorf("%d jobs were claimed for an engine that cannot be reached", held)
		}
		calls := b.engine.calls
		b.engine.say(nil)
		b.wait(6 * time.Second)
		b.want(sluice.StateDispatched, 100)
		b.unburnt(ids)
		if calls > 10*60/5+10 {
			b.Errorf("the engine was asked %d times while it was out", calls)
		}
	})
}

func TestWhatABusyEngineHasNoRoomForWaitsAgainUncounted(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(4, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrBusy, false))
		b.run(1)
		b.wait(5 * time.Second)
		b.want(sluice.StateDispatched, 0)
		if job := b.job(ids[0]); job.Releases == 0 || job.Attempts != 0 {
			b.Errorf("%d releases, %d attempts", job.Releases, job.Attempts)
		}
		b.engine.say(nil)
		b.wait(5 * time.Second)
		b.want(sluice.StateDispatched, 4)
	})
}

func TestBusyAfterADoubtSaysNothingOfBefore(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, true))
		b.run(1)
		b.wait(2 * time.Second)
		b.engine.say(always(engine.ErrBusy, false))
		b.wait(30 * time.Second)
		b.want(sluice.StateClaimed, 1)
		b.engine.say(nil)
		b.wait(10 * time.Second)
		b.want(sluice.StateDispatched, 1)
	})
}

// TestRunIsAskedForWhereItWasIntended changes where the queue's jobs run, to another namespace, to another engine or to
// workers. Nobody knows at that moment whether the runs were started.
func TestRunIsAskedForWhereItWasIntended(t *testing.T) {
	for name, move := range map[string]func(*sluice.Settings){
		"the queue has another namespace": func(s *sluice.Settings) { s.RunNamespace = "new" },
		"the queue has another engine":    func(s *sluice.Settings) { s.RunNamespace, s.Engine = "new", "another" },
		"workers run its jobs now":        func(s *sluice.Settings) { s.Engine = "" },
	} {
		t.Run(name, func(t *testing.T) {
			inBank(t, func(b *bank) {
				b.set(func(s *sluice.Settings) { s.RunNamespace = "old" })
				b.enqueue(3, sluice.EnqueueOptions{})
				b.engine.say(always(engine.ErrUnavailable, true))
				b.run(1)
				b.wait(2 * time.Second)
				b.set(move)
				b.enqueue(1, sluice.EnqueueOptions{DueAt: time.Now().Add(time.Hour)})
				b.wait(2 * time.Second)
				b.engine.say(nil)
				b.wait(20 * time.Second)
				b.want(sluice.StateDispatched, 3)
				if slices.ContainsFunc(b.engine.asks, func(namespace string) bool { return namespace != "old" }) {
					b.Errorf("runs were asked for in %q", b.engine.asks)
				}
			})
		})
	}
}

func TestMissingTargetHandsJobsBackAndStopsTheQueue(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(50, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrTarget, false))
		b.run(1)
		b.wait(time.Minute)
		b.want(sluice.StateQueued, 50)
		b.unburnt(ids)
		if b.engine.calls > 14 {
			b.Errorf("the engine was asked %d times in a minute", b.engine.calls)
		}
		b.engine.say(nil)
		b.wait(10 * time.Second)
		b.want(sluice.StateDispatched, 50)
	})
}

// TestWhatADeadDispatcherHeldIsAskedFor leaves intents behind, as a dispatcher does that is killed before or after it
// asked the engine for the run.
func TestWhatADeadDispatcherHeldIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		asked bool
		then  engine.State
		want  sluice.State
	}{
		"it had not asked for the run":            {false, "", sluice.StateDispatched},
		"the run is under way":                    {true, engine.Running, sluice.StateDispatched},
		"the run has ended well":                  {true, engine.Completed, sluice.StateCompleted},
		"the run has failed":                      {true, engine.Failed, sluice.StateDead},
		"the run was terminated by a person":      {true, engine.Terminated, sluice.StateDead},
		"the run was cancelled by a person":       {true, engine.Cancelled, sluice.StateDead},
		"the ref is that of somebody else's run":  {true, engine.Foreign, sluice.StateDead},
		"the run took longer than it was allowed": {true, engine.TimedOut, sluice.StateDead},
	} {
		t.Run(name, func(t *testing.T) {
			inBank(t, func(b *bank) {
				id := b.enqueue(1, sluice.EnqueueOptions{})[0]
				b.abandon(c.asked)
				if c.asked && c.then != engine.Running {
					b.engine.end(c.then)
				}
				b.run(1)
				b.wait(2 * time.Minute)
				if job := b.job(id); job.State != c.want {
					b.Fatalf("the job is %s, want %s", job.State, c.want)
				}
				if n := b.engine.most(); n != 1 {
					b.Errorf("the run was started %d times", n)
				}
			})
		})
	}
}

// abandon claims all jobs and records their intents, as a dispatcher does. asked says whether the runs are also
// started.
func (b *bank) abandon(asked bool) {
	b.Helper()
	b.abandonAs(asked, func(*sluice.Settings) {})
}

func (b *bank) abandonAs(asked bool, change func(*sluice.Settings)) {
	b.Helper()
	settings := sluice.DefaultSettings()
	settings.Engine = "temporal"
	change(&settings)
	claimed, err := b.store.Claim(b.Context(), sluice.ClaimRequest{Queue: "payment", Limit: 100, Holder: "dead", Lease: time.Minute, Token: sluice.NewToken(), Engine: "temporal"})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range claimed.Jobs {
		ref := engine.RefOf(c.Job, settings)
		errs, err := engine.Given(b.store).RecordIntent(b.Context(), []engine.Intent{{ID: c.ID, Token: c.Token, Ref: ref, Engine: settings.Engine, Lease: time.Minute}})
		if err := errors.Join(append(errs, err)...); err != nil {
			b.Fatal(err)
		}
		if asked {
			b.engine.Start(b.Context(), engine.Target{}, []engine.Run{{Ref: ref, Job: c.ID}})
		}
	}
}

func TestRunThatTheEngineHasForgottenLeavesItsJobUncertain(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(2, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(2 * time.Second)
		b.want(sluice.StateDispatched, 2)
		b.engine.mu.Lock()
		delete(b.engine.runs, b.job(ids[0]).Ref)
		b.engine.mu.Unlock()
		b.wait(time.Minute)
		if job := b.job(ids[0]); job.State != sluice.StateUncertain {
			b.Errorf("the job whose run is gone is %s", job.State)
		}
		b.want(sluice.StateDispatched, 1)
	})
}

func TestClaimOlderThanTheEnginesMemoryIsUncertain(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = time.Hour
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.abandon(false)
		b.wait(2 * time.Hour)
		b.run(1)
		b.wait(time.Minute)
		if job := b.job(id); job.State != sluice.StateUncertain {
			b.Errorf("the job is %s", job.State)
		}
		if len(b.engine.refs()) != 0 {
			b.Error("its run was started")
		}
	})
}

func TestFailedRunIsTriedAgainUnderAnotherRefWhereTheQueueSaysSo(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.RetryRuns, s.MaxAttempts = true, 2 })
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.run(1)
		b.wait(2 * time.Second)
		b.engine.end(engine.Failed)
		b.wait(20 * time.Second)
		b.want(sluice.StateDispatched, 1)
		if refs := b.engine.refs(); len(refs) != 2 || refs[1] != refs[0]+"-a2" {
			b.Errorf("the runs are %v", refs)
		}
		b.engine.end(engine.Failed)
		b.wait(20 * time.Second)
		if job := b.job(id); job.State != sluice.StateDead || job.Attempts != 2 {
			b.Errorf("the job is %s after %d attempts", job.State, job.Attempts)
		}
	})
}

func TestDispatcherThatEndsSettlesWhatItHasClaimed(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(100, sluice.EnqueueOptions{})
		b.engine.say(func(engine.Run) (error, bool) {
			b.stop() // stops the dispatcher in the middle of its cycle
			return nil, true
		})
		b.run(1)
		b.wait(time.Minute)
		b.want(sluice.StateDispatched, 100)
	})
}

func TestOnceTellsOfAnEngineThatItWasNotGiven(t *testing.T) {
	inBank(t, func(b *bank) {
		_, err := dispatcher.New(b.store, dispatcher.Options{Logger: quiet}).Once(b.Context(), "payment")
		if _, isUnknown := errors.AsType[*engine.UnknownError](err); !isUnknown || !errors.Is(err, sluice.ErrNotFound) {
			b.Errorf("the error is %v", err)
		}
	})
}

func TestNextBatchIsClaimedWhileTheEngineStartsAndStartedThoughTheDispatcherEnds(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.Batch = 10 })
		b.enqueue(60, sluice.EnqueueOptions{})
		ctx, end := context.WithCancel(b.Context())
		asked, ahead := 0, 0
		b.engine.say(func(engine.Run) (error, bool) {
			if asked++; asked == 31 { // a run of the fourth batch
				time.Sleep(100 * time.Millisecond)
				ahead = b.count(sluice.StateClaimed)
				end()
			}
			return nil, true
		})
		// Upkeep does not run here, because it would wait for the engine, which sleeps above.
		go func() {
			_ = dispatcher.New(b.store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet}).Run(ctx)
		}()
		b.wait(10 * time.Second)
		if ahead != 20 {
			b.Errorf("%d jobs were claimed while the engine started 10, want as many more", ahead)
		}
		b.want(sluice.StateClaimed, 0)
		b.want(sluice.StateDispatched, 50)
	})
}
