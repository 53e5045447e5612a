package await_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
)

// bench is a store in memory without a worker. Tests end its jobs.
type bench struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
}

func newBench(t *testing.T) bench {
	t.Helper()
	store := memory.New(memory.Options{})
	return bench{t, store, sluice.NewClient(store, sluice.ClientOptions{})}
}

func (b bench) enqueue() sluice.ID {
	b.Helper()
	receipt, err := b.client.Enqueue(b.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		b.Fatal(err)
	}
	return receipt.ID
}

// end claims all jobs and settles each with the event.
func (b bench) end(event sluice.Event, result string) {
	b.Helper()
	claimed, err := b.store.Claim(b.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1000, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil {
		b.Fatal(err)
	}
	var ends []sluice.Settlement
	for _, c := range claimed.Jobs {
		ends = append(ends, sluice.Settlement{ID: c.ID, Token: c.Token, Event: event, Result: json.RawMessage(result), Error: "no answer"})
	}
	if errs, err := b.store.Settle(b.Context(), ends); errors.Join(append(errs, err)...) != nil {
		b.Fatal(errs, err)
	}
}

func TestEachCallerGetsTheResultOfItsJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiter := await.New(b.store)
	var all sync.WaitGroup
	for range 100 {
		id := b.enqueue()
		for range 2 {
			all.Go(func() {
				got, err := await.Result[map[string]int](t.Context(), waiter, id)
				if err != nil || got["cents"] != 7 {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
	}
	b.end(sluice.EventComplete, `{"cents":7}`)
	all.Wait()
	if _, err := waiter.Wait(t.Context(), b.enqueueEnded()); err != nil {
		t.Errorf("a job that ended before: %v", err)
	}
}

func (b bench) enqueueEnded() sluice.ID {
	id := b.enqueue()
	b.end(sluice.EventComplete, "")
	return id
}

func TestAFailedJobIsATypedError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dead := b.enqueue()
	b.end(sluice.EventBury, "")
	_, err := await.New(b.store).Wait(t.Context(), dead)
	var failed *await.FailedError
	if !errors.As(err, &failed) || failed.End.State != sluice.StateDead || !strings.HasSuffix(err.Error(), "is dead: no answer") {
		t.Errorf("dead: %v", err)
	}
	cancelled := b.enqueue()
	go func() {
		_ = b.client.Cancel(context.WithoutCancel(t.Context()), []sluice.ID{cancelled}, sluice.Act{By: "ada"})
	}()
	if _, err := await.New(b.store).Wait(t.Context(), cancelled); !errors.As(err, &failed) || failed.End.State != sluice.StateCancelled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAJobThatIsNotStoredIsNotFound(t *testing.T) {
	t.Parallel()
	if _, err := await.New(newBench(t).store).Wait(t.Context(), sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAResultOfAnotherTypeIsInvalid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.enqueue()
	b.end(sluice.EventComplete, `"text"`)
	if _, err := await.Result[int](t.Context(), await.New(b.store), id); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestACallerLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiter, id := await.New(b.store), b.enqueue()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the customer left")
	cancel(reason)
	if _, err := waiter.Wait(ctx, id); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	b.end(sluice.EventComplete, "")
	if _, err := waiter.Wait(t.Context(), id); err != nil {
		t.Errorf("a later caller: %v", err)
	}
}

func TestAStoreThatCannotWaitSaysSo(t *testing.T) {
	t.Parallel()
	only := struct{ sluice.Store }{newBench(t).store}
	for name, store := range map[string]sluice.Store{"bare": only, "observed": observe.Store(only)} {
		if _, err := await.New(store).Wait(t.Context(), sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) || !strings.Contains(err.Error(), "cannot wait for jobs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// down is a store that fails each read of ended jobs.
type down struct{ sluice.Store }

var errDown = errors.New("the database is down")

func (down) Await(context.Context, []sluice.ID) error { return nil }

func (down) Ended(context.Context, []sluice.ID) ([]await.End, error) { return nil, errDown }

func TestACallerWhoLeavesLearnsThatTheStoreCouldNotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := await.New(down{b.store}).Wait(ctx, b.enqueue())
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

// Callers come and go while the watch begins and ends, and each caller must get its answer.
func TestNoCallerIsForgottenWhenTheWatchEndsAndBegins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiter := await.New(b.store)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if _, err := waiter.Wait(t.Context(), sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	all.Wait()
}
