package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/presence"
)

// keeps says how long the engine keeps runs that ended.
func (e *scripted) keeps(retention time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Retention = retention
}

// trouble returns the conditions that keep the first holder of a role from its work.
func (b *bank) trouble(role string) string {
	b.Helper()
	holders, err := presence.Holders(b.Context(), b.store)
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range holders {
		if h.Role == role {
			return h.Summary()
		}
	}
	b.Fatalf("no %s beats", role)
	return ""
}

// reasons lists the reasons that the audit has for an event, the newest first.
func (b *bank) reasons(event sluice.Event) (all []string) {
	b.Helper()
	entries, err := b.client.Audit(b.Context(), sluice.AuditFilter{Name: "payment", Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if e.Event == event {
			all = append(all, e.Reason)
		}
	}
	return all
}

func TestQueueWhoseRunsCouldNotBeFollowedIsNotDispatched(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.keeps(time.Hour)
		b.set(func(s *sluice.Settings) { s.FollowInterval = 10 * time.Minute })
		b.enqueue(3, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(6 * time.Second)
		b.want(sluice.StateQueued, 3)
		if trouble := b.trouble(presence.RoleDispatcher); !strings.Contains(trouble, "queue payment: invalid follow_interval: 10m is unsafe") {
			b.Errorf("the dispatcher says %q", trouble)
		}
		b.set(func(s *sluice.Settings) { s.FollowInterval = time.Minute })
		b.wait(10 * time.Second)
		b.want(sluice.StateDispatched, 3)
		if trouble := b.trouble(presence.RoleDispatcher); trouble != "" {
			b.Errorf("the dispatcher still says %q", trouble)
		}
	})
}

func TestNamedQueueOfAnotherEngineIsTheTroubleOfItsDispatcher(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(1, sluice.EnqueueOptions{})
		b.set(func(s *sluice.Settings) { s.Engine = "elsewhere" })
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		engines := map[string]engine.Engine{"temporal": b.engine}
		for _, queues := range [][]string{{"payment"}, nil} { // nil: all queues of its engines; it must report nothing
			go func() {
				_ = dispatcher.New(b.store, dispatcher.Options{Engines: engines, Queues: queues, Logger: quiet}).Run(ctx)
			}()
		}
		b.wait(10 * time.Second)
		b.want(sluice.StateQueued, 1)
		if got := brokenConditions(b); got != "queue payment names the engine elsewhere, which this process was not given" {
			b.Errorf("the dispatchers say %q", got)
		}
		b.set(func(*sluice.Settings) {})
		b.wait(10 * time.Second)
		b.want(sluice.StateDispatched, 1)
		b.wait(time.Minute)
		if got := brokenConditions(b); got != "" {
			b.Errorf("the dispatchers still say %q", got)
		}
		b.set(func(s *sluice.Settings) { s.Engine = "elsewhere" })
		b.wait(time.Minute)
		if got := brokenConditions(b); !strings.Contains(got, "names the engine elsewhere") {
			b.Errorf("once it has changed, the dispatchers say %q", got)
		}
	})
}

func TestOnceSaysThatRunsCouldNotBeFollowed(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.keeps(time.Minute)
		b.enqueue(1, sluice.EnqueueOptions{})
		_, err := dispatcher.New(b.store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet}).Once(b.Context(), "payment")
		if rule, isRule := errors.AsType[*sluice.InvalidError](err); !isRule || rule.Field != "follow_interval" {
			b.Errorf("the error is %v", err)
		}
		b.want(sluice.StateQueued, 1)
	})
}

func TestEngineThatKeepsRunsForLessIsNoticed(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.keeps(24 * time.Hour)
		b.enqueue(1, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 1)
		b.engine.keeps(time.Minute)
		b.wait(11 * time.Minute)
		for _, role := range []string{presence.RoleDispatcher, presence.RoleUpkeep} {
			if trouble := b.trouble(role); !strings.Contains(trouble, "follow_interval") {
				b.Errorf("the %s says %q", role, trouble)
			}
		}
		b.enqueue(1, sluice.EnqueueOptions{})
		b.wait(10 * time.Second)
		b.want(sluice.StateQueued, 1)
	})
}

func TestRunsUnderWayAreFollowedInTimeHoweverLongTheInterval(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.keeps(10 * time.Minute)
		b.set(func(s *sluice.Settings) { s.FollowInterval = 5 * time.Hour })
		b.enqueue(2, sluice.EnqueueOptions{})
		b.abandon(true)
		b.run(1)
		b.wait(3 * time.Minute)
		b.want(sluice.StateDispatched, 2)
		b.engine.end(engine.Completed)
		b.wait(2 * time.Minute)
		b.want(sluice.StateCompleted, 2)
	})
}

func TestOpenBreakerIsSeenByPeople(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.say(always(engine.ErrUnavailable, false))
		b.enqueue(1, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(6 * time.Second)
		if trouble := b.trouble(presence.RoleDispatcher); !strings.HasPrefix(trouble, "queue payment: the breaker is open: engine temporal: start: engine unavailable (since ") {
			b.Errorf("the dispatcher says %q", trouble)
		}
		b.engine.say(always(engine.ErrTarget, false))
		b.wait(11 * time.Second)
		if trouble := b.trouble(presence.RoleDispatcher); !strings.Contains(trouble, engine.ErrTarget.Error()) {
			b.Errorf("of another cause the dispatcher says %q", trouble)
		}
		b.engine.say(nil)
		b.wait(15 * time.Second)
		if trouble := b.trouble(presence.RoleDispatcher); trouble != "" {
			b.Errorf("the dispatcher still says %q", trouble)
		}
		if told := strings.Join(b.reasons(audit.EventBreaker), ", "); told != "closed, opened: engine temporal: start: engine unavailable" {
			b.Errorf("the audit tells %q", told)
		}
	})
}

// TestAnEngineThatDoesNotSayHowRunsAreIsAConditionOfUpkeep cuts the engine off while no job waits to be started. So no
// dispatcher opens a breaker.
func TestAnEngineThatDoesNotSayHowRunsAreIsAConditionOfUpkeep(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(1, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 1)
		b.engine.cutOff(engine.ErrUnavailable)
		b.wait(time.Minute)
		if trouble := b.trouble(presence.RoleUpkeep); !strings.Contains(trouble, "queue payment: the runs cannot be followed: engine temporal: ") {
			b.Errorf("upkeep says %q", trouble)
		}
	})
}

// TestRunsThatNoWorkerWaitsForAreToldOf removes the engine's workers, and adds them again.
func TestRunsThatNoWorkerWaitsForAreToldOf(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.RunTaskQueue, s.RunNamespace = "payers", "billing" })
		polled := func(n int) {
			b.engine.mu.Lock()
			defer b.engine.mu.Unlock()
			b.engine.report.Pollers = n
		}
		polled(0)
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.run(1)
		b.wait(40 * time.Second)
		b.want(sluice.StateDispatched, 1)
		says := `no worker polls task queue "payers" in namespace "billing"`
		why := func() string {
			out, err := explain.Job(b.Context(), b.store, id)
			if err != nil {
				b.Fatal(err)
			}
			return out.Reasons[0].Summary
		}
		if trouble := b.trouble(presence.RoleUpkeep); !strings.Contains(trouble, "queue payment: "+says) {
			b.Errorf("upkeep says %q", trouble)
		}
		if told := why(); !strings.Contains(told, says) {
			b.Errorf("why says %q", told)
		}
		polled(1)
		b.wait(40 * time.Second)
		if trouble := b.trouble(presence.RoleUpkeep); trouble != "" {
			b.Errorf("upkeep still says %q", trouble)
		}
		if told := why(); strings.Contains(told, "polls") {
			b.Errorf("why still says %q", told)
		}
		polled(0)
		b.engine.end(engine.Completed)
		b.wait(40 * time.Second)
		if trouble := b.trouble(presence.RoleUpkeep); trouble != "" {
			b.Errorf("without any runs upkeep says %q", trouble)
		}
	})
}

func TestAuditSaysWhyAJobWasBuried(t *testing.T) {
	inBank(t, func(b *bank) {
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.run(1)
		b.wait(2 * time.Second)
		b.engine.mu.Lock()
		b.engine.runs[refsOf([]sluice.ID{id})[0]] = engine.Outcome{
			Ref: refsOf([]sluice.ID{id})[0], Job: id, State: engine.Failed, Error: "no route\nto bank " + strings.Repeat("x", 1000), EndedAt: time.Now(),
		}
		b.engine.mu.Unlock()
		b.wait(5 * time.Second)
		b.want(sluice.StateDead, 1)
		told := b.reasons(sluice.EventBury)
		if len(told) != 1 || !strings.HasPrefix(told[0], "the run failed: no route to bank xxx") || len(told[0]) > 200 {
			b.Errorf("the audit tells %q", told)
		}
	})
}

// runs has a name of its own, because two embedded ports are named Store.
type runs = engine.Store

// counted counts the calls of upkeep for each queue.
type counted struct {
	sluice.Store
	runs

	mu     sync.Mutex
	queues int
	looks  map[string]int
}

// Unwrap returns the decorated store.
func (c *counted) Unwrap() sluice.Store { return c.Store }

func (c *counted) count(queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks[queue]++
}

func (c *counted) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	c.mu.Lock()
	c.queues++
	c.mu.Unlock()
	return c.Store.Queues(ctx, filter)
}

func (c *counted) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	c.count(filter.Queue)
	return c.runs.Dispatches(ctx, filter)
}

func (c *counted) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	c.count(queue)
	return c.runs.OrphanRuns(ctx, queue, after, limit)
}

func TestQueuesWithNothingAtAnyEngineCostLittle(t *testing.T) {
	inBank(t, func(b *bank) {
		if _, err := b.client.EnsureQueue(b.Context(), "mail", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
			b.Fatal(err)
		}
		store := &counted{Store: b.store, runs: engine.Given(b.store), looks: make(map[string]int)}
		b.store = store
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		go func() { _ = b.upkeep().Run(ctx) }()
		b.wait(59500 * time.Millisecond)
		store.mu.Lock()
		defer store.mu.Unlock()
		if store.queues > 60+4 { // alert rules are evaluated every 15 s
			b.Errorf("upkeep read the queues %d times in 60 rounds", store.queues)
		}
		if n := store.looks["mail"]; n != 4 {
			b.Errorf("a queue without an engine was looked at by %d statements in a minute, want 2 each half", n)
		}
		if n := store.looks["payment"]; n > 60 {
			b.Errorf("a queue with nothing at its engine was looked at by %d statements in a minute", n)
		}
		if b.engine.listed > 0 {
			b.Errorf("its engine was asked %d times for runs that ended", b.engine.listed)
		}
	})
}
