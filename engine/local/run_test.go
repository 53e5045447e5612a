package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// shop is an engine on a store in memory in a bubble of fake time.
type shop struct {
	*testing.T
	store  sluice.Store
	engine *local.Engine
}

func inShop(t *testing.T, test func(s *shop)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		test(&shop{t, store, local.New(store, local.Options{Worker: worker.Options{Logger: quiet}})})
	})
}

func run(ref string) engine.Run {
	return engine.Run{Ref: ref, Job: sluice.NewID(), Generation: 2, Attempt: 3, Tenant: "acme", Priority: 7, Labels: map[string]string{"for": "ada"}, Payload: json.RawMessage(`{"amount": 1}`)}
}

func (s *shop) start(run engine.Run) error {
	s.Helper()
	return s.engine.Start(s.Context(), target, []engine.Run{run})[0]
}

func (s *shop) started(run engine.Run) {
	s.Helper()
	if err := s.start(run); err != nil {
		s.Fatal(err)
	}
}

// is checks the state of a run, once all goroutines wait.
func (s *shop) is(ref string, want engine.State) engine.Outcome {
	s.Helper()
	synctest.Wait()
	out, err := s.engine.Outcomes(s.Context(), target, []string{ref})
	if err != nil || out[0].State != want {
		s.Fatalf("the run is %+v (%v), want %s", out, err, want)
	}
	return out[0]
}

// tend lets some time pass and then runs upkeep once.
func (s *shop) tend(after time.Duration) {
	s.Helper()
	time.Sleep(after)
	if _, err := upkeep.New(s.store, upkeep.Options{Logger: quiet}).Once(s.Context(), true); err != nil {
		s.Fatal(err)
	}
}

func TestFunctionGetsTheRunAsItWasAskedFor(t *testing.T) {
	inShop(t, func(s *shop) {
		type amount struct{ Amount int }
		got := make(chan *local.Run[amount], 1)
		execute(s.T, s.store, func(_ context.Context, run *local.Run[amount]) (any, error) {
			got <- run
			return nil, nil
		})
		want := run("rules-1")
		s.started(want)
		has := <-got
		if has.Execution == "" {
			s.Error("the execution has no name")
		}
		if all := (local.Run[amount]{Run: want, Queue: "rules", Input: amount{1}, Execution: has.Execution}); !reflect.DeepEqual(*has, all) {
			s.Errorf("got %+v, want %+v", *has, all)
		}
		time.Sleep(time.Second)
		s.is(want.Ref, engine.Completed)
		bad := run("rules-2")
		bad.Payload = json.RawMessage(`{"amount":"much"}`)
		s.started(bad)
		time.Sleep(time.Second)
		if out := s.is(bad.Ref, engine.Failed); !strings.Contains(out.Error, "does not fit") {
			s.Errorf("the error is %q", out.Error)
		}
	})
}

func TestRunOfAKilledProcessIsExecutedByTheNext(t *testing.T) {
	inShop(t, func(s *shop) {
		order := run("rules-1")
		s.started(order)
		claimed, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: local.QueueOf(target.Type), Limit: 1, Holder: "killed", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			s.Fatalf("claimed %+v (%v)", claimed, err)
		}
		s.is(order.Ref, engine.Running)
		var executed atomic.Int32
		execute(s.T, s.store, func(context.Context, *local.Run[any]) (any, error) {
			executed.Add(1)
			return nil, nil
		})
		time.Sleep(30 * time.Second)
		s.is(order.Ref, engine.Running)
		s.tend(time.Minute)
		time.Sleep(time.Second)
		s.is(order.Ref, engine.Completed)
		if n := executed.Load(); n != 1 {
			s.Errorf("executed %d times, want once", n)
		}
	})
}

func TestRunThatTheDrainCutsOffIsExecutedAgain(t *testing.T) {
	inShop(t, func(s *shop) {
		order := run("rules-1")
		s.started(order)
		stop := execute(s.T, s.store, func(ctx context.Context, _ *local.Run[any]) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		synctest.Wait()
		stop()
		s.is(order.Ref, engine.Running)
		execute(s.T, s.store, func(context.Context, *local.Run[any]) (any, error) { return "done", nil })
		time.Sleep(time.Second)
		s.is(order.Ref, engine.Completed)
	})
}

func TestSettingsOfTheRunsQueueCount(t *testing.T) {
	inShop(t, func(s *shop) {
		var executed atomic.Int32
		execute(s.T, s.store, func(context.Context, *local.Run[any]) (any, error) {
			return nil, fmt.Errorf("no route to bank, try %d", executed.Add(1))
		})
		synctest.Wait()
		client := sluice.NewClient(s.store, sluice.ClientOptions{})
		_, err := client.ChangeSettings(s.Context(), local.QueueOf(target.Type), sluice.Act{By: "ada"}, func(q *sluice.Settings) error {
			q.MaxAttempts = 3
			q.KeepDead = time.Hour
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * sluice.SettingsInterval)
		order := run("rules-1")
		s.started(order)
		time.Sleep(time.Minute)
		if out := s.is(order.Ref, engine.Failed); out.Error != "no route to bank, try 3" {
			s.Errorf("the error is %q", out.Error)
		}
		report, err := s.engine.Check(s.Context(), target)
		if err != nil || report.Retention != time.Hour || report.Pollers != 1 {
			s.Errorf("the report is %+v (%v), want a retention of 1h and one poller", report, err)
		}
		s.tend(2 * time.Hour)
		s.is(order.Ref, engine.Absent)
	})
}

func TestCheckTellsThatNobodyExecutes(t *testing.T) {
	inShop(t, func(s *shop) {
		for _, started := range []bool{false, true} {
			if started {
				s.started(run("rules-1"))
			}
			report, err := s.engine.Check(s.Context(), target)
			if err != nil || report.Pollers != 0 || report.Retention != local.DefaultSettings().KeepCompleted {
				s.Errorf("the report is %+v (%v), want no pollers", report, err)
			}
		}
		stop := execute(s.T, s.store, func(context.Context, *local.Run[any]) (any, error) { return nil, nil })
		synctest.Wait()
		if report, _ := s.engine.Check(s.Context(), target); report.Pollers != 1 {
			s.Errorf("there are %d pollers, want 1", report.Pollers)
		}
		stop()
		if report, _ := s.engine.Check(s.Context(), target); report.Pollers != 0 {
			s.Errorf("there are %d pollers after the end, want none", report.Pollers)
		}
	})
}

func TestJobThatSomebodyPutThereIsForeign(t *testing.T) {
	inShop(t, func(s *shop) {
		order := run("rules-1")
		s.started(order)
		page, err := s.store.Jobs(s.Context(), sluice.JobFilter{Limit: 1})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].Labels["job"] != order.Job.String() {
			s.Fatalf("the run is stored as %+v (%v)", page, err)
		}
		other := memory.New(memory.Options{})
		byHand := sluice.NewJob{Queue: page.Jobs[0].Queue, Payload: []byte(`"mine"`), EnqueueOptions: sluice.EnqueueOptions{ID: page.Jobs[0].ID}}
		if _, err := sluice.NewClient(other, sluice.ClientOptions{}).Enqueue(s.Context(), byHand); err != nil {
			s.Fatal(err)
		}
		s.engine = local.New(other, local.Options{})
		s.is(order.Ref, engine.Foreign)
		if err := s.start(order); !errors.Is(err, engine.ErrRefTaken) {
			s.Errorf("the error is %v, want %v", err, engine.ErrRefTaken)
		}
	})
}

// crowd adds many entries of another queue to the audit.
func (s *shop) crowd(moves int) {
	s.Helper()
	client := sluice.NewClient(s.store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Audit = sluice.AuditFull
	if _, err := client.EnsureQueue(s.Context(), "other", settings, sluice.Act{By: "ada"}); err != nil {
		s.Fatal(err)
	}
	jobs := make([]sluice.NewJob, moves)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "other", Payload: []byte(`{}`)}
	}
	if _, err := client.EnqueueMany(s.Context(), jobs); err != nil {
		s.Fatal(err)
	}
}

func TestEndedFindsRunsBehindWhateverElseWasAudited(t *testing.T) {
	inShop(t, func(s *shop) {
		execute(s.T, s.store, func(context.Context, *local.Run[any]) (any, error) { return "done", nil })
		s.started(run("before"))
		time.Sleep(time.Minute)
		since := time.Now()
		s.started(run("first"))
		time.Sleep(time.Second)
		s.crowd(2500)
		s.started(run("second"))
		time.Sleep(time.Second)
		var found []string
		pages := 0
		for next := []byte(nil); pages == 0 || next != nil; pages++ {
			page, err := s.engine.Ended(s.Context(), target, since, next)
			if err != nil {
				s.Fatal(err)
			}
			for _, o := range page.Runs {
				if len(o.Result) > 0 {
					s.Errorf("the result of %s is told, which nobody wants", o.Ref)
				}
				found = append(found, o.Ref)
			}
			next = page.Next
		}
		if !slices.Equal(found, []string{"second", "first"}) || pages != 3 {
			s.Errorf("%d pages list %q, want 3 that list the second and the first", pages, found)
		}
		if _, err := s.engine.Ended(s.Context(), target, since, []byte("x")); err == nil {
			s.Error("a next that no page gave is none to fail on")
		}
	})
}

func TestReasonOfACancelFitsTheAudit(t *testing.T) {
	inShop(t, func(s *shop) {
		order := run("rules-1")
		s.started(order)
		reason := "line 1\nline 2 \xff " + strings.Repeat("ß", 1000)
		if err := s.engine.Cancel(s.Context(), target, []string{order.Ref}, reason)[0]; err != nil {
			s.Fatal(err)
		}
		s.is(order.Ref, engine.Cancelled)
	})
}

func TestRunTellsWhatIsWrongAtTheStart(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	if err := local.New(store, local.Options{}).Run(t.Context()); err == nil {
		t.Error("an engine without functions runs")
	}
	engine := local.New(closed(t, store), local.Options{Worker: worker.Options{Logger: quiet}})
	local.Handle(engine, "obey", func(context.Context, *local.Run[any]) (any, error) { return nil, nil }, worker.QueueOptions{})
	if err := engine.Run(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("the error is %v, want %v", err, sluice.ErrUnavailable)
	}
}

func TestRunIsRefusedIfItsPayloadIsNestedTooDeep(t *testing.T) {
	inShop(t, func(s *shop) {
		for depth, refused := range map[int]bool{499: false, 500: false, 501: true} {
			deep := run(fmt.Sprintf("rules-%d", depth))
			deep.Payload = json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
			if err := s.start(deep); errors.Is(err, engine.ErrRefused) != refused || !refused && err != nil {
				s.Errorf("%d levels: %v", depth, err)
			}
		}
	})
}
