package explain_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
)

// ada is the actor in these tests.
var ada = sluice.Act{By: "ada", Reason: "test"}

func newClient(t *testing.T) (*sluice.Client, sluice.Store) {
	t.Helper()
	store := memory.New(memory.Options{})
	return sluice.NewClient(store, sluice.ClientOptions{}), store
}

// explained is a job in a queue of its own, in fake time. Its methods check the explanation of the job.
type explained struct {
	*testing.T
	client *sluice.Client
	store  sluice.Store
	id     sluice.ID
}

// closed checks which reasons keep the job from starting, and returns the explanation.
func (e *explained) closed(want ...string) explain.Explanation {
	e.Helper()
	why, err := explain.Job(e.Context(), e.store, e.id)
	if err != nil {
		e.Fatal(err)
	}
	var names []string
	for _, reason := range why.Closed() {
		names = append(names, reason.Name)
		if reason.Summary == "" {
			e.Errorf("reason %s says nothing", reason.Name)
		}
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		e.Errorf("closed are %q, want %q", names, want)
	}
	return why
}

func (e *explained) settings(change func(*sluice.Settings)) {
	e.Helper()
	if _, err := e.client.ChangeSettings(e.Context(), "q", ada, func(s *sluice.Settings) error {
		change(s)
		return nil
	}); err != nil {
		e.Fatal(err)
	}
}

// claim claims one job.
func (e *explained) claim() *sluice.Claim {
	e.Helper()
	claimed, err := e.store.Claim(e.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Hour, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		e.Fatalf("claimed %d jobs: %v", len(claimed.Jobs), err)
	}
	return claimed.Jobs[0]
}

func (e *explained) settle(c *sluice.Claim, event sluice.Event) {
	e.Helper()
	s := sluice.Settlement{ID: c.ID, Token: c.Token, Event: event, Error: "no route to bank\nat all", Delay: time.Minute, Ref: "run-1"}
	if errs, err := e.store.Settle(e.Context(), []sluice.Settlement{s}); err != nil || errs[0] != nil {
		e.Fatalf("settle: %v %v", err, errs)
	}
}

// inQueue runs a test with one job that a worker could claim at once.
func inQueue(t *testing.T, options sluice.EnqueueOptions, test func(e *explained)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, store := newClient(t)
		if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), ada); err != nil {
			t.Fatal(err)
		}
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: options})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := presence.Given(store).Heartbeat(t.Context(), presence.Holder{ID: "h", Role: "worker", Queues: []string{"q"}, Slots: 3}); err != nil {
			t.Fatal(err)
		}
		test(&explained{t, client, store, receipt.ID})
	})
}

func TestWhySaysThatAJobShouldStartNow(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		if why := e.closed(); !why.Start.Equal(why.Now) || len(why.Reasons) != 9 {
			e.Errorf("%d reasons are open and it starts at %s, now is %s", len(why.Reasons), why.Start, why.Now)
		}
	})
}

func TestWhyNamesEachGateThatIsClosed(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{Delay: time.Hour}, func(e *explained) {
		if why := e.closed("due"); why.Start.Sub(why.Now) != time.Hour {
			e.Errorf("it starts in %s, want 1h", why.Start.Sub(why.Now))
		}
		e.settings(func(s *sluice.Settings) { s.Paused, s.PausedUntil = true, time.Now().Add(2*time.Hour) })
		if why := e.closed("due", "paused"); why.Start.Sub(why.Now) != 2*time.Hour {
			e.Errorf("it starts in %s, want 2h", why.Start.Sub(why.Now))
		}
		e.settings(func(s *sluice.Settings) { s.PausedUntil = time.Time{} })
		if why := e.closed("due", "paused"); !why.Start.IsZero() {
			e.Errorf("it starts at %s, which nobody knows", why.Start)
		}
		time.Sleep(time.Hour)
		e.closed("paused", "workers") // the worker was not seen for an hour
	})
}

func TestWhyTellsOfTheQueuesLimits(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{Priority: 9}, func(e *explained) {
		for range 4 {
			if _, err := e.client.Enqueue(e.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
				e.Fatal(err)
			}
		}
		e.settings(func(s *sluice.Settings) { s.Rate, s.Burst, s.Concurrency = sluice.RatePerSecond(0.1), 1, 1 })
		if why := e.closed("order"); why.Start.Sub(why.Now) != 40*time.Second {
			e.Errorf("it starts in %s, want 40s: four come before it at 6/m", why.Start.Sub(why.Now))
		}
		claim := e.claim()
		e.closed("rate", "in_flight", "order")
		e.settle(claim, sluice.EventComplete)
		if why := e.closed("rate", "order"); why.Start.Sub(why.Now) != 40*time.Second {
			e.Errorf("it starts in %s, want 40s: 10s to the next token, and three come before it", why.Start.Sub(why.Now))
		}
	})
}

func TestWhyCountsTheTokensThatAreThere(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{Priority: 9}, func(e *explained) {
		for range 10 {
			if _, err := e.client.Enqueue(e.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
				e.Fatal(err)
			}
		}
		e.settings(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.1), 20 })
		if why := e.closed("order"); !why.Start.Equal(why.Now) {
			e.Errorf("it starts in %s, want now: there are tokens for all", why.Start.Sub(why.Now))
		}
		e.settings(func(s *sluice.Settings) { s.Burst = 1 })
		if err := e.client.Reschedule(e.Context(), []sluice.ID{e.id}, time.Now().Add(time.Hour), ada); err != nil {
			e.Fatal(err)
		}
		if why := e.closed("due", "order"); why.Start.Sub(why.Now) != time.Hour {
			e.Errorf("it starts in %s, want 1h: the others are gone by then", why.Start.Sub(why.Now))
		}
	})
}

func TestWhyNamesWhoPausedAndNotWhoChangedSomethingElse(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		if err := e.client.Pause(e.Context(), "q", sluice.Act{By: "grace", Reason: "the bank is down"}); err != nil {
			e.Fatal(err)
		}
		e.settings(func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(5) })
		if says := e.closed("paused").Closed()[0].Summary; !strings.Contains(says, "grace") || !strings.Contains(says, "the bank is down") {
			e.Errorf("%q names somebody else", says)
		}
	})
}

func TestPauseThatHasEndedCanBeginAgain(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		if _, err := e.client.PauseFor(e.Context(), "q", time.Second, ada); err != nil {
			e.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		e.closed()
		e.settings(func(s *sluice.Settings) { s.Paused = true })
		e.closed("paused")
	})
}

func TestWhyTellsWhatBecameOfAJob(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{MaxAttempts: 2}, func(e *explained) {
		says := func(word string) {
			e.Helper()
			if why := e.closed("state"); !strings.Contains(why.Reasons[0].Summary, word) || !why.Start.IsZero() {
				e.Errorf("%q does not speak of %q", why.Reasons[0].Summary, word)
			}
		}
		claim := e.claim()
		says("h claimed it")
		e.settle(claim, sluice.EventRetry)
		if why := e.closed("due"); !strings.Contains(why.Closed()[0].Summary, "after failed attempt 1: no route to bank") {
			e.Errorf("%q does not speak of the failed attempt", why.Closed()[0].Summary)
		}
		time.Sleep(time.Hour)
		claim = e.claim()
		e.settle(claim, sluice.EventDispatch)
		says("run-1")
		e.settle(claim, sluice.EventDoubt)
		says("not known")
		e.settle(claim, sluice.EventBury)
		says("dead")
		if err := e.client.Requeue(e.Context(), []sluice.ID{e.id}, ada); err != nil {
			e.Fatal(err)
		}
		if err := e.client.Cancel(e.Context(), []sluice.ID{e.id}, ada); err != nil {
			e.Fatal(err)
		}
		says("cancelled")
	})
}

func TestWhyOfAnUnknownJobIsNotFound(t *testing.T) {
	t.Parallel()
	_, store := newClient(t)
	if _, err := explain.Job(t.Context(), store, sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("%v, want not found", err)
	}
}

func TestPauseForOpensByItself(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		until, err := e.client.PauseFor(e.Context(), "q", time.Hour, ada)
		if err != nil || time.Until(until) != time.Hour {
			e.Fatalf("paused until %s, %v", until, err)
		}
		time.Sleep(time.Hour - time.Second)
		e.closed("paused", "workers")
		time.Sleep(time.Second)
		e.closed("workers")
		e.claim()
		if _, err := e.client.PauseFor(e.Context(), "q", 0, ada); !errors.Is(err, sluice.ErrInvalid) {
			e.Errorf("a pause of no time: %v", err)
		}
	})
}

// TestDispatchersThatLeaveTheQueueAloneAreNamed checks that the explanation names dispatchers whose engine does not
// answer, and the engine.
func TestDispatchersThatLeaveTheQueueAloneAreNamed(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.Engine = "eu" })
		says := func(id, queue string) {
			e.Helper()
			holder := presence.Holder{ID: id, Role: presence.RoleDispatcher, Queues: []string{"q", "other"}, Conditions: []presence.Condition{away(queue), {Kind: presence.ConditionOther, Text: "odd"}}}
			if _, err := presence.Given(e.store).Heartbeat(e.Context(), holder); err != nil {
				e.Fatal(err)
			}
		}
		last := func(why explain.Explanation) string { return why.Reasons[len(why.Reasons)-1].Summary }
		says("h:1", "q")
		why := e.closed("dispatchers")
		reason := why.Reasons[len(why.Reasons)-1]
		if reason.Summary != `no dispatcher hands the queue's jobs to the engine "eu": `+awaySays || !why.Start.IsZero() {
			e.Errorf("it says %q, and starts at %s", reason.Summary, why.Start)
		}
		if want := "sluice engine check q --engine eu=temporal://HOST:PORT/NAMESPACE "; !strings.HasPrefix(reason.Repair, want) {
			e.Errorf("it is mended by %q, want %q", reason.Repair, want)
		}
		says("h:1", "other")
		if got := last(e.closed()); got != `1 dispatcher hands the queue's jobs to the engine "eu"` {
			e.Errorf("it says %q", got)
		}
		says("h:1", "q")
		says("h:2", "other")
		if got := last(e.closed()); got != `1 of 2 dispatchers hand the queue's jobs to the engine "eu"; another says: `+awaySays {
			e.Errorf("it says %q", got)
		}
		says("h:1", "other")
		if got := last(e.closed()); got != `2 dispatchers hand the queue's jobs to the engine "eu"` {
			e.Errorf("it says %q", got)
		}
	})
}

// away is the condition of a dispatcher whose engine does not answer. awaySays is its text for a queue.
func away(queue string) presence.Condition {
	return presence.EngineCondition(queue, "eu", time.Unix(1_800_000_000, 0), "the breaker is open", errors.New("no route"))
}

const awaySays = "the breaker is open: engine eu: no route (since 2027-01-15T08:00:00Z)"

// TestClaimedJobOfAnEngineThatIsAwaySaysSo covers a job that was claimed before its dispatcher knew that the engine is
// away.
func TestClaimedJobOfAnEngineThatIsAwaySaysSo(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.Engine = "eu" })
		claimed, err := e.store.Claim(e.Context(), sluice.ClaimRequest{Queue: "q", Engine: "eu", Limit: 1, Holder: "h:1", Lease: time.Hour, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			e.Fatal(claimed, err)
		}
		job := claimed.Jobs[0]
		if errs, err := engine.Given(e.store).RecordIntent(e.Context(), []engine.Intent{{ID: job.ID, Token: job.Token, Ref: "r", Engine: "eu", Lease: time.Hour}}); err != nil || errs[0] != nil {
			e.Fatal(errs, err)
		}
		says := e.closed("state").Reasons[0].Summary
		if _, err := presence.Given(e.store).Heartbeat(e.Context(), presence.Holder{ID: "h:1", Role: presence.RoleDispatcher, Queues: []string{"q"}, Conditions: []presence.Condition{away("q")}}); err != nil {
			e.Fatal(err)
		}
		if got := e.closed("state").Reasons[0].Summary; got != says+"; it waits for that: "+awaySays {
			e.Errorf("it says %q", got)
		}
	})
}

// TestRunsThatNobodyTakesAreTheCauseOfAFullQueue covers a job that waits behind runs for which the engine has no
// workers.
func TestRunsThatNobodyTakesAreTheCauseOfAFullQueue(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.Engine, s.Concurrency = "eu", 1 })
		claimed, err := e.store.Claim(e.Context(), sluice.ClaimRequest{Queue: "q", Engine: "eu", Limit: 1, Holder: "h:1", Lease: time.Hour, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			e.Fatal(claimed, err)
		}
		receipt, err := e.client.Enqueue(e.Context(), sluice.NewJob{Queue: "q", Payload: []byte("2")})
		if err != nil {
			e.Fatal(err)
		}
		e.id = receipt.ID
		nobody := presence.NewCondition(presence.ConditionNoPollers, "q", "eu", time.Time{}, `no worker polls task queue "bank"`)
		for _, h := range []presence.Holder{
			{ID: "u:1", Role: presence.RoleUpkeep, Conditions: []presence.Condition{nobody}},
			{ID: "h:1", Role: presence.RoleDispatcher, Queues: []string{"q"}},
		} {
			if _, err := presence.Given(e.store).Heartbeat(e.Context(), h); err != nil {
				e.Fatal(err)
			}
		}
		reason := e.closed("in_flight").Closed()[0]
		if !strings.HasSuffix(reason.Summary, nobody.Text) || !strings.Contains(reason.Repair, "run_task_queue") {
			e.Errorf("it says %q, mended by %q", reason.Summary, reason.Repair)
		}
	})
}

func TestWhySaysThatUpkeepWorksOnInternalQueues(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		const hook = "sluice.notify.hook"
		if _, err := e.store.SaveQueue(e.Context(), sluice.Queue{Name: hook, Settings: sluice.DefaultSettings()}, ada); err != nil {
			e.Fatal(err)
		}
		e.id = sluice.NewID()
		in := sluice.Insert{NewJob: sluice.NewJob{Queue: hook, Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{ID: e.id, Priority: 5}}}
		if _, err := e.store.Enqueue(e.Context(), []sluice.Insert{in}); err != nil {
			e.Fatal(err)
		}
		e.closed("upkeep")
		if _, err := presence.Given(e.store).Heartbeat(e.Context(), presence.Holder{ID: "u", Role: presence.RoleUpkeep}); err != nil {
			e.Fatal(err)
		}
		e.closed()
	})
}

// TestAProgramThatIsTooOldForTheSchemaServesNothing covers a program whose heartbeats the store may still take.
func TestAProgramThatIsTooOldForTheSchemaServesNothing(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		old := presence.Holder{ID: "h", Role: presence.RoleWorker, Queues: []string{"q"}, Slots: 2, Conditions: []presence.Condition{presence.TooOld(26)}}
		if _, err := presence.Given(e.store).Heartbeat(e.Context(), old); err != nil {
			e.Fatal(err)
		}
		for _, kind := range []presence.ConditionKind{presence.ConditionTooOld, presence.ConditionSilent} {
			reason := e.closed("workers").Closed()[0]
			if !strings.Contains(reason.Summary, "the last one is h: ") || !strings.Contains(reason.Summary, "which needs one that knows step 26") {
				e.Errorf("it says %q", reason.Summary)
			}
			holders, err := presence.Holders(e.Context(), e.store)
			if err != nil || len(holders) != 1 || len(holders[0].Conditions) != 1 {
				e.Fatalf("the holders are %+v, %v, want one with one condition", holders, err)
			}
			if c := holders[0].Conditions[0]; c.Kind != kind || !strings.Contains(c.Text, "too old") || !strings.Contains(c.Repair, "deploy the newer program") {
				e.Errorf("it is told as %+v", c)
			}
			time.Sleep(presence.Silence + time.Second)
		}
	})
}

// TestAKilledWorkerIsToldByItsJobAndByTheHolders checks that both name since when the worker is silent, and when its
// lease ends.
func TestAKilledWorkerIsToldByItsJobAndByTheHolders(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		for _, id := range []string{"h", "idle"} {
			if _, err := presence.Given(e.store).Heartbeat(e.Context(), presence.Holder{ID: id, Role: presence.RoleWorker, Queues: []string{"q"}}); err != nil {
				e.Fatal(err)
			}
		}
		e.claim()
		kinds := func() (all []presence.ConditionKind) {
			e.Helper()
			holders, err := presence.Holders(e.Context(), e.store)
			if err != nil {
				e.Fatal(err)
			}
			for _, h := range holders {
				for _, c := range h.Conditions {
					all = append(all, c.Kind)
				}
			}
			return all
		}
		if got := kinds(); len(got) != 0 {
			e.Errorf("living workers have %v", got)
		}
		time.Sleep(presence.Silence + time.Second)
		if got := kinds(); len(got) != 2 || got[0] != presence.ConditionLost || got[1] != presence.ConditionSilent {
			e.Errorf("killed workers have %v", got)
		}
		reason := e.closed("state").Reasons[0]
		if !strings.Contains(reason.Summary, "was last heard of at") || reason.Repair != "sluice upkeep" {
			e.Errorf("it says %q, mended by %q", reason.Summary, reason.Repair)
		}
		time.Sleep(59*time.Minute - time.Second)
		time.Sleep(time.Minute)
		if reason := e.closed("state").Reasons[0]; !strings.Contains(reason.Summary, "its lease ended at") || strings.Contains(reason.Summary, "it is running") {
			e.Errorf("after its lease it says %q", reason.Summary)
		}
	})
}

func TestWhyNamesTheJobsThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	add := func(options sluice.EnqueueOptions) *explained {
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`1`), EnqueueOptions: options})
		if err != nil {
			t.Fatal(err)
		}
		return &explained{T: t, client: client, store: store, id: receipt.ID}
	}
	says := func(why explain.Explanation, reason string, want ...string) {
		t.Helper()
		for _, g := range why.Reasons {
			for _, text := range want {
				if g.Name == reason && !strings.Contains(g.Summary, text) {
					t.Errorf("reason %s says %q, want %q in it", reason, g.Summary, text)
				}
			}
		}
	}
	if _, err := presence.Given(store).Heartbeat(t.Context(), presence.Holder{ID: "h", Queues: []string{"q"}, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	first := add(sluice.EnqueueOptions{OrderKey: "o"})
	first.closed()
	second := add(sluice.EnqueueOptions{OrderKey: "o"})
	claim := first.claim()
	says(second.closed("order_key"), "order_key", first.id.String(), "claimed", `"o"`)
	last := add(sluice.EnqueueOptions{After: []sluice.ID{first.id, second.id}, AfterFailure: sluice.FailureWaits})
	says(last.closed("after"), "after", "0 of the 2", first.id.String(), second.id.String(), "waits until")
	settle := sluice.Settlement{ID: claim.ID, Token: claim.Token, Event: sluice.EventComplete}
	if errs, err := store.Settle(t.Context(), []sluice.Settlement{settle}); errors.Join(append(errs, err)...) != nil {
		t.Fatal(errs, err)
	}
	second.closed()
	says(last.closed("after", "order"), "after", "1 of the 2", "queued")
	if err := client.Cancel(t.Context(), []sluice.ID{second.id}, ada); err != nil {
		t.Fatal(err)
	}
	says(last.closed("after"), "after", "cancelled")
	if reason := last.closed("after").Closed()[0]; !strings.Contains(reason.Repair, "then: sluice requeue "+second.id.String()) {
		t.Errorf("what mends it is %q", reason.Repair)
	}
	runs := add(sluice.EnqueueOptions{After: []sluice.ID{first.id, second.id}, AfterFailure: sluice.FailureRuns})
	if err := client.Delete(t.Context(), []sluice.ID{second.id}, ada); err != nil {
		t.Fatal(err)
	}
	says(last.closed("state"), "state", "cancelled")
	says(runs.closed(), "after", "1 of the 2", "gone")
}
