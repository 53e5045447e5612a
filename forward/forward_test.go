package forward_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
)

const queue = "orders"

var quiet = slog.New(slog.DiscardHandler)

// line is a store with a faulty connection. It fails a verb before the store does it, or after, which loses the answer.
type line struct {
	sluice.Store
	mu     sync.Mutex
	before map[string]error
	after  map[string]error
	pause  func() // called once the store has answered for its queues; may be nil
}

// Unwrap returns the decorated store.
func (l *line) Unwrap() sluice.Store { return l.Store }

func newLine() *line {
	return &line{Store: memory.New(memory.Options{}), before: make(map[string]error), after: make(map[string]error)}
}

func (l *line) fail(where map[string]error, verb string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	where[verb] = err
}

func (l *line) fault(where map[string]error, verb string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return where[verb]
}

func (l *line) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if err := l.fault(l.before, "queues"); err != nil {
		return nil, err
	}
	queues, err := l.Store.Queues(ctx, filter)
	if l.pause != nil {
		l.pause()
	}
	return queues, err
}

func (l *line) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	if err := l.fault(l.before, "enqueue"); err != nil {
		return nil, err
	}
	receipts, err := l.Store.Enqueue(ctx, jobs)
	return receipts, errors.Join(err, l.fault(l.after, "enqueue"))
}

func (l *line) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	if err := l.fault(l.before, "settle"); err != nil {
		return nil, err
	}
	return l.Store.Settle(ctx, settlements)
}

func (l *line) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	if err := l.fault(l.before, "cancel"); err != nil {
		return nil, err
	}
	return l.Store.Cancel(ctx, ids, act)
}

// sea is a local store, a central store, and a forwarder between them.
type sea struct {
	*testing.T
	local, centre   *line
	edge, mainland  *sluice.Client
	forwarder       *forward.Forwarder
	forwardToCentre forward.Options
}

func newSea(t *testing.T) *sea {
	s := &sea{T: t, local: newLine(), centre: newLine()}
	s.edge, s.mainland = sluice.NewClient(s.local, sluice.ClientOptions{}), sluice.NewClient(s.centre, sluice.ClientOptions{})
	s.forwardToCentre = forward.Options{Queues: []string{queue}, Centre: "hq", Logger: quiet}
	s.forwarder = forward.New(s.local, s.centre, s.forwardToCentre)
	return s
}

// other returns a second forwarder, as another process would run.
func (s *sea) other() *forward.Forwarder { return forward.New(s.local, s.centre, s.forwardToCentre) }

func (s *sea) add(options sluice.EnqueueOptions) sluice.ID {
	s.Helper()
	receipt, err := s.edge.Enqueue(s.Context(), sluice.NewJob{Queue: queue, Payload: json.RawMessage(`{"n":12345678901234567890}`), EnqueueOptions: options})
	if err != nil || receipt.Duplicate {
		s.Fatalf("enqueue: %+v, %v", receipt, err)
	}
	return receipt.ID
}

func (s *sea) once(want forward.Sent) {
	s.Helper()
	sent, err := s.forwarder.Once(s.Context())
	if err != nil || sent != want {
		s.Fatalf("sent %+v, %v; want %+v", sent, err, want)
	}
}

func (s *sea) job(c *sluice.Client, id sluice.ID) sluice.Job {
	s.Helper()
	j, err := c.Job(s.Context(), id)
	if err != nil {
		s.Fatalf("look up %s: %v", id, err)
	}
	return j
}

func (s *sea) is(c *sluice.Client, id sluice.ID, state sluice.State) sluice.Job {
	s.Helper()
	j := s.job(c, id)
	if j.State != state || j.Attempts > 0 && state != sluice.StateDead || j.Recoveries > 0 {
		s.Fatalf("job %s is %s with %d attempts and %d recoveries, want %s", id, j.State, j.Attempts, j.Recoveries, state)
	}
	return j
}

func TestJobArrivesAsItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id := s.add(sluice.EnqueueOptions{
			Tenant: "acme", Key: "k", DueAt: time.Now().AddDate(30, 0, 0), Priority: 2, ExpiresAt: time.Now().AddDate(40, 0, 0),
			Labels: map[string]string{"a": "b"}, MaxAttempts: 7, OrderKey: "o", Timeout: time.Minute,
		})
		s.once(forward.Sent{Claimed: 1, Forwarded: 1})
		here := s.is(s.edge, id, sluice.StateCompleted)
		if string(here.Result) != `{"forwarded_to":"hq"}` {
			t.Errorf("the result is %s", here.Result)
		}
		there := s.is(s.mainland, id, sluice.StateQueued)
		for name, pair := range map[string][2]any{
			"tenant": {here.Tenant, there.Tenant}, "key": {here.Key, there.Key}, "due": {here.DueAt, there.DueAt},
			"priority": {here.Priority, there.Priority}, "expires": {here.ExpiresAt, there.ExpiresAt}, "labels": {here.Labels, there.Labels},
			"max attempts": {here.MaxAttempts, there.MaxAttempts}, "timeout": {here.Timeout, there.Timeout}, "order key": {here.OrderKey, there.OrderKey},
			"payload": {string(here.Payload), string(there.Payload)}, "scope": {sluice.WhileUnfinished, there.KeyScope},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s is %v here and %v there", name, pair[0], pair[1])
			}
		}
	})
}

func TestKeysKeepTheirScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		window := s.add(sluice.EnqueueOptions{Key: "w", KeyScope: sluice.ForWindow, KeyWindow: time.Hour})
		over := s.add(sluice.EnqueueOptions{Key: "v", KeyScope: sluice.ForWindow, KeyWindow: time.Minute})
		ever := s.add(sluice.EnqueueOptions{Key: "e", KeyScope: sluice.ForEver})
		end := time.Now().Add(time.Hour)
		time.Sleep(30 * time.Minute)
		s.once(forward.Sent{Claimed: 3, Forwarded: 3})
		if j := s.job(s.mainland, window); j.KeyScope != sluice.ForWindow || !j.KeyUntil.Equal(end) {
			t.Errorf("the window is %s until %s, want %s", j.KeyScope, j.KeyUntil, end)
		}
		if j := s.job(s.mainland, ever); j.KeyScope != sluice.ForEver {
			t.Errorf("for ever is %s", j.KeyScope)
		}
		time.Sleep(time.Millisecond)
		if j := s.job(s.mainland, over); j.Key != "v" || j.KeyScope != "" {
			t.Errorf("a window that was over is %s", j.KeyScope)
		}

		// Another edge was faster: the job is not stored a second time, and the result says which one is.
		first, err := s.mainland.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Key: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		twin := s.add(sluice.EnqueueOptions{Key: "x"})
		behind := s.add(sluice.EnqueueOptions{After: []sluice.ID{twin}})
		sent, err := s.forwarder.Once(t.Context())
		if err != nil || sent != (forward.Sent{Claimed: 2, Forwarded: 1, Duplicates: 1}) {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		var arrival forward.Arrival
		if err := json.Unmarshal(s.job(s.edge, twin).Result, &arrival); err != nil || arrival.DuplicateOf != first.ID {
			t.Errorf("the result is %+v, %v", arrival, err)
		}
		if j := s.job(s.mainland, behind); j.BlockedBy != first.ID {
			t.Errorf("what was to run after the twin waits for %s, not for %s", j.BlockedBy, first.ID)
		}
	})
}

func TestOrderIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		var want []sluice.ID
		for i := range 20 {
			want = append(want, s.add(sluice.EnqueueOptions{OrderKey: "account", Priority: 1 + i%10}))
		}
		after := s.add(sluice.EnqueueOptions{After: want[18:], AfterFailure: sluice.FailureRuns, AfterFailures: map[sluice.ID]sluice.AfterFailure{want[19]: sluice.FailureCancels}})
		s.once(forward.Sent{Claimed: 21, Forwarded: 21})
		j := s.is(s.mainland, after, sluice.StateQueued)
		if j.BlockedBy.IsZero() || len(j.After) != 2 || j.AfterFailure != sluice.FailureRuns || j.AfterFailures[want[19]] != sluice.FailureCancels {
			t.Errorf("the last one waits for %s of %v", j.BlockedBy, j.After)
		}
		for i, id := range want {
			claimed, err := s.centre.Claim(t.Context(), sluice.ClaimRequest{Queue: queue, Limit: 10, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
			if err != nil || len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != id {
				t.Fatalf("the claim %d got %d jobs, %v", i, len(claimed.Jobs), err)
			}
			c := claimed.Jobs[0]
			if errs, err := s.centre.Settle(t.Context(), []sluice.Settlement{{ID: c.ID, Token: c.Token, Event: sluice.EventComplete}}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
	})
}

// TestWhatEndedHereIsNotWaitedForThere forwards a job that runs after a local job. The local job has ended here and is
// unknown at the centre.
func TestWhatEndedHereIsNotWaitedForThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		here, err := s.edge.Enqueue(t.Context(), sluice.NewJob{Queue: "here", Payload: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		id := s.add(sluice.EnqueueOptions{After: []sluice.ID{here.ID}})
		s.once(forward.Sent{})
		claimed, err := s.local.Claim(t.Context(), sluice.ClaimRequest{Queue: "here", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.local.Settle(t.Context(), []sluice.Settlement{{ID: here.ID, Token: claimed.Jobs[0].Token, Event: sluice.EventComplete}}); err != nil {
			t.Fatal(err)
		}
		s.once(forward.Sent{Claimed: 1, Forwarded: 1})
		if j := s.is(s.mainland, id, sluice.StateQueued); len(j.After) > 0 {
			t.Errorf("it is to run after %v", j.After)
		}
	})
}

func TestWhatTheCentreRefusesIsADeadLetterAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		settings := sluice.DefaultSettings()
		settings.PayloadLimit = 10
		if _, err := s.mainland.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		large := s.add(sluice.EnqueueOptions{})
		small, err := s.edge.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		s.once(forward.Sent{Claimed: 2, Forwarded: 1, Refused: 1})
		s.is(s.mainland, small.ID, sluice.StateQueued)
		if j := s.is(s.edge, large, sluice.StateDead); j.Error == "" {
			t.Error("the dead letter does not say why")
		}
	})
}

// TestQueueThatTheCentreRefusesWaitsHere checks that the forwarder sends the jobs once somebody has declared the queue
// at the centre.
func TestQueueThatTheCentreRefusesWaitsHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		ada := sluice.Act{By: "ada", Reason: "test"}
		if _, err := admission.Save(t.Context(), s.centre, admission.Policy{MaxQueues: 10, Declared: true}, ada); err != nil {
			t.Fatal(err)
		}
		id := s.add(sluice.EnqueueOptions{})
		_, err := s.forwarder.Once(t.Context())
		var unknown *admission.UnknownQueueError
		if !errors.As(err, &unknown) {
			t.Fatalf("error %v", err)
		}
		s.is(s.edge, id, sluice.StateQueued)
		if _, err := s.mainland.EnsureQueue(t.Context(), queue, sluice.DefaultSettings(), ada); err != nil {
			t.Fatal(err)
		}
		s.once(forward.Sent{Claimed: 1, Forwarded: 1})
		s.is(s.mainland, id, sluice.StateQueued)
	})
}

// TestOutageCostsNothing makes the centre unavailable. Meanwhile the forwarder must claim nothing, and no attempt may
// be counted.
func TestOutageCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		s.centre.fail(s.centre.before, "queues", sluice.ErrUnavailable)
		id := s.add(sluice.EnqueueOptions{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.forwarder.Run(ctx) }()
		time.Sleep(time.Hour)
		s.is(s.edge, id, sluice.StateQueued)
		status, err := forward.StatusOf(t.Context(), s.local, []string{queue})
		if err != nil || status[0].Waiting != 1 || status[0].Since.IsZero() || len(status[0].Forwarders) != 1 {
			t.Errorf("the status is %+v, %v", status, err)
		}
		s.centre.fail(s.centre.before, "queues", nil)
		time.Sleep(62 * time.Second) // the longest backoff
		s.is(s.mainland, id, sluice.StateQueued)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if holders, err := presence.Given(s.local).Holders(t.Context()); err != nil || len(holders) > 0 {
			t.Errorf("it left %v, %v", holders, err)
		}
	})
}

// TestForwarderThatDiesOnTheWay kills a forwarder before or after its jobs arrive. The next forwarder sends them again,
// the centre stores each once, and no recovery is counted.
func TestForwarderThatDiesOnTheWay(t *testing.T) {
	t.Parallel()
	for step, fault := range map[string]func(s *sea){
		"before it sends":   func(s *sea) { s.centre.fail(s.centre.before, "enqueue", sluice.ErrUnavailable) },
		"after it has sent": func(s *sea) { s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable) },
		"before it settles": func(s *sea) { s.local.fail(s.local.before, "settle", sluice.ErrUnavailable) },
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSea(t)
				id := s.add(sluice.EnqueueOptions{})
				fault(s)
				for range 10 {
					if _, err := s.other().Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
						t.Fatalf("it ended with %v", err)
					}
					s.is(s.edge, id, sluice.StateClaimed)
					if _, err := s.local.Recover(t.Context(), queue, 100, "upkeep"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Minute)
				}
				s.centre.fail(s.centre.before, "enqueue", nil)
				s.centre.fail(s.centre.after, "enqueue", nil)
				s.local.fail(s.local.before, "settle", nil)
				status, err := forward.StatusOf(t.Context(), s.local, []string{queue})
				if err != nil || status[0].OnTheWay != 1 || fmt.Sprint(status[0].Centres) != "[hq]" {
					t.Errorf("the status is %+v, %v", status, err)
				}
				s.once(forward.Sent{Forwarded: 1})
				s.is(s.edge, id, sluice.StateCompleted)
				s.is(s.mainland, id, sluice.StateQueued)
			})
		})
	}
}

// TestNothingIsSentTwiceHoweverLate covers a job whose arrival nobody here knows. At the centre the job has ended and
// is deleted by now.
func TestNothingIsSentTwiceHoweverLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		forgotten, waiting := s.add(sluice.EnqueueOptions{Priority: 1}), s.add(sluice.EnqueueOptions{})
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		claimed, err := s.centre.Claim(t.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || claimed.Jobs[0].ID != forgotten {
			t.Fatal(err)
		}
		if _, err := s.centre.Settle(t.Context(), []sluice.Settlement{{ID: forgotten, Token: claimed.Jobs[0].Token, Event: sluice.EventComplete}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * 24 * time.Hour)
		if pruned, err := s.centre.Prune(t.Context(), "", 100); err != nil || pruned.Deleted != 1 {
			t.Fatal(pruned, err)
		}
		sent, err := s.other().Once(t.Context())
		if err != nil || sent != (forward.Sent{Forwarded: 1, Uncertain: 1}) {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		s.is(s.edge, waiting, sluice.StateCompleted)
		s.is(s.edge, forgotten, sluice.StateUncertain)
		if _, err := s.mainland.Job(t.Context(), forgotten); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("it is there again: %v", err)
		}
	})
}

func TestWhatIsOnItsWayGoesNowhereElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id := s.add(sluice.EnqueueOptions{})
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); err == nil {
			t.Fatal("it was sent")
		}
		time.Sleep(time.Hour)
		elsewhere := newLine()
		options := s.forwardToCentre
		options.Centre = "elsewhere"
		if sent, err := forward.New(s.local, elsewhere, options).Once(t.Context()); err != nil || sent != (forward.Sent{}) {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		s.is(s.edge, id, sluice.StateClaimed)
	})
}

func TestQueuesMustBeNamed(t *testing.T) {
	t.Parallel()
	for _, queues := range [][]string{nil, {"a b"}} {
		f := forward.New(newLine(), newLine(), forward.Options{Queues: queues})
		if _, err := f.Once(t.Context()); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q: %v", queues, err)
		}
		if err := f.Run(t.Context()); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q: %v", queues, err)
		}
	}
}
