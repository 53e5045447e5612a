package observe_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// witness is an observer that remembers all calls and moves.
type witness struct {
	mu    sync.Mutex
	begun []string
	moves []observe.Move
	calls map[string]int
	told  chan struct{}
}

func newWitness() *witness {
	return &witness{calls: make(map[string]int), told: make(chan struct{}, 1000)}
}

func (w *witness) Begin(ctx context.Context, c *observe.Call) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, c.Name)
	return ctx
}

func (w *witness) End(_ context.Context, c *observe.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[string(c.Kind)+" "+c.Name]++
	for m := range c.Moves() {
		w.moves = append(w.moves, m)
	}
	w.told <- struct{}{}
}

func (w *witness) seen(event sluice.Event) []observe.Move {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []observe.Move
	for _, m := range w.moves {
		if m.Event == event {
			out = append(out, m)
		}
	}
	return out
}

// until waits until the witness has seen an event count times.
func (w *witness) until(t *testing.T, event sluice.Event, count int) []observe.Move {
	t.Helper()
	for {
		if seen := w.seen(event); len(seen) >= count {
			return seen
		}
		select {
		case <-w.told:
		case <-t.Context().Done():
			t.Fatalf("%d moves %s were seen, want %d", len(w.seen(event)), event, count)
		}
	}
}

func TestEveryMethodOfAStoreIsObserved(t *testing.T) {
	t.Parallel()
	unobserved := map[string]bool{"Watch": true, "Close": true}
	port := reflect.TypeFor[sluice.Store]()
	for method := range port.Methods() {
		if unobserved[method.Name] {
			continue
		}
		w := newWitness()
		callWithNothing(observe.Store(absent{}, w), method.Name)
		if want := words(method.Name); len(w.begun) != 1 || w.begun[0] != want {
			t.Errorf("a call of %s was told as %q, want %q", method.Name, w.begun, want)
		}
	}
}

func TestEveryMethodOfAnEngineIsObserved(t *testing.T) {
	t.Parallel()
	for _, port := range []reflect.Type{reflect.TypeFor[engine.Engine](), reflect.TypeFor[engine.Terminator]()} {
		for method := range port.Methods() {
			w := newWitness()
			callWithNothing(observe.Engine(byForce{}, "temporal", w), method.Name)
			if want := words(method.Name); len(w.begun) != 1 || w.begun[0] != want {
				t.Errorf("a call of %s was told as %q, want %q", method.Name, w.begun, want)
			}
		}
	}
}

// absent is a decorator without a store.
type absent struct{ sluice.Store }

type byForce struct {
	engine.Engine
	engine.Terminator
}

// callWithNothing calls a method with zero values. No store is behind the observers, so the call panics there, and
// callWithNothing recovers.
func callWithNothing(port any, name string) {
	defer func() { _ = recover() }()
	method := reflect.ValueOf(port).MethodByName(name)
	var arguments []reflect.Value
	for in := range method.Type().Ins() {
		arguments = append(arguments, reflect.Zero(in))
	}
	arguments[0] = reflect.ValueOf(context.Background())
	method.Call(arguments)
}

// words writes a Go name in small letters with _ between words.
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestALifeIsToldMoveByMove(t *testing.T) {
	t.Parallel()
	w := newWitness()
	store := observe.Store(memory.New(memory.Options{}), w)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Backoff.Base, settings.MaxAttempts = time.Millisecond, 2
	if _, err := client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, job := range []sluice.NewJob{
		{Queue: "mail", Payload: []byte(`"good"`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme", Key: "k"}},
		{Queue: "mail", Payload: []byte(`"bad"`)},
		{Queue: "mail", Payload: []byte(`"twin"`), EnqueueOptions: sluice.EnqueueOptions{Key: "k"}},
	} {
		if _, err := client.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	works := worker.New(store, worker.Options{Poll: time.Millisecond})
	worker.Handle(works, sluice.QueueOf[string]("mail"), func(_ context.Context, job *worker.Job[string]) error {
		if job.Payload == "bad" {
			return errors.New("no")
		}
		return nil
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- works.Run(ctx) }()
	buried := w.until(t, sluice.EventBury, 1)[0]
	completed := w.until(t, sluice.EventComplete, 1)[0]
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	if got := len(w.seen(sluice.EventEnqueue)); got != 2 {
		t.Errorf("%d enqueues were told, want 2: a duplicate is none", got)
	}
	if got, back := len(w.seen(sluice.EventClaim)), len(w.seen(sluice.EventRelease)); got != 3+back {
		t.Errorf("%d claims were told, want 3 and the %d that were handed back", got, back)
	}
	if completed.Queue != "mail" || completed.Tenant != "acme" || completed.Failed || completed.Run < 0 || completed.Total < completed.Run {
		t.Errorf("the completion was told as %+v", completed)
	}
	if buried.Attempts != 2 || !buried.Failed || buried.Reason != "attempts spent" {
		t.Errorf("the burial was told as %+v", buried)
	}
	if got := w.seen(sluice.EventRetry); len(got) != 1 || got[0].Attempts != 1 || got[0].Total >= 0 {
		t.Errorf("the failed attempt was told as %+v", got)
	}
	if w.calls["step handle"] != 3 {
		t.Errorf("%d handled jobs were told, want 3", w.calls["step handle"])
	}
}

func TestARefusedCallMovesNothing(t *testing.T) {
	t.Parallel()
	w := newWitness()
	store := observe.Store(memory.New(memory.Options{}), w)
	errs, err := store.Settle(t.Context(), []sluice.Settlement{{ID: sluice.NewID(), Token: sluice.NewToken(), Event: sluice.EventComplete}})
	if err != nil || errs[0] == nil {
		t.Fatalf("settling a job that is not there gave %v, %v", errs, err)
	}
	if errs, err = store.Cancel(t.Context(), []sluice.ID{sluice.NewID()}, sluice.Act{By: "test"}); err != nil || errs[0] == nil {
		t.Fatalf("cancelling a job that is not there gave %v, %v", errs, err)
	}
	for _, m := range w.moves {
		if m.Count > 0 {
			t.Errorf("a move was told: %+v", m)
		}
	}
}

// thin is a decorator that does not pass on steps.
type thin struct{ sluice.Store }

func (t thin) Unwrap() sluice.Store { return t.Store }

func TestAStepIsToldThroughOtherDecorators(t *testing.T) {
	t.Parallel()
	w := newWitness()
	store := thin{observe.Store(memory.New(memory.Options{}), w)}
	_, end := step.Begin(t.Context(), store, step.Step{Name: step.Cycle})
	end(step.End{})
	if w.calls["step cycle"] != 1 {
		t.Errorf("the step was told %d times, want once", w.calls["step cycle"])
	}
}
