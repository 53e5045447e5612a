package move

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/upkeep"
)

// batchWorld makes jobs of batches.
type batchWorld struct{ *world }

func (w batchWorld) open(b batch.Batch) batch.Batch {
	w.Helper()
	opened, err := batch.Open(w.Context(), w.store, b, by("batch"))
	w.ok(err)
	return opened
}

// end adds a job to a batch, and ends it.
func (w batchWorld) end(id sluice.ID, event sluice.Event) sluice.ID {
	w.Helper()
	job := w.add("plain", sluice.EnqueueOptions{Batch: id})
	w.settle(w.claim("plain", 1)[0], event)
	return job
}

func (w batchWorld) advance(times int) {
	w.Helper()
	for range times {
		_, err := batch.Given(w.store).AdvanceBatches(w.Context(), 100)
		w.ok(err)
	}
}

// TestCallbacksThatWereDueAreEnqueuedAfterAMove moves batches of which something has become since upkeep looked.
func TestCallbacksThatWereDueAreEnqueuedAfterAMove(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{newFile(t), pgtest.NewDatabase(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
		store := open(t, way[0])
		w := batchWorld{&world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: rand.New(rand.NewPCG(1, 0))}}
		call := func(queue string) *batch.Callback { return &batch.Callback{Queue: queue} }
		later := w.open(batch.Batch{Callbacks: batch.Callbacks{OnSuccess: call("succeeded")}})
		outer := w.open(batch.Batch{Callbacks: batch.Callbacks{OnDeath: call("outer-died")}})
		inner := w.open(batch.Batch{Parent: outer.ID})
		early := w.open(batch.Batch{Callbacks: batch.Callbacks{OnDeath: call("died")}})
		again := w.open(batch.Batch{Callbacks: batch.Callbacks{OnDeath: call("died-once")}})
		quiet := w.open(batch.Batch{Callbacks: batch.Callbacks{OnDeath: call("quiet"), OnComplete: call("quiet"), OnSuccess: call("quiet")}})

		dead := w.end(later.ID, sluice.EventBury)
		w.ok(batch.Close(t.Context(), store, later.ID, by("batch")))
		w.advance(5)
		w.end(inner.ID, sluice.EventBury)
		w.advance(1) // decides about the inner batch, and is to look at the outer one next
		w.ok(w.client.Requeue(t.Context(), []sluice.ID{dead}, by("again")))
		w.settle(w.claim("plain", 1)[0], sluice.EventComplete)
		w.end(early.ID, sluice.EventBury)
		w.end(quiet.ID, sluice.EventComplete)
		revived := w.end(again.ID, sluice.EventBury)
		w.ok(w.client.Requeue(t.Context(), []sluice.ID{revived}, by("again"))) // before upkeep has seen the death

		mustMove(t, way[0], way[1])
		moved := open(t, way[1])
		for range 5 {
			_, err := upkeep.New(moved, upkeep.Options{Logger: slog.New(slog.DiscardHandler)}).Once(t.Context(), true)
			w.ok(err)
		}
		for queue, want := range map[string]int{"succeeded": 1, "outer-died": 1, "died": 1, "died-once": 1, "quiet": 0} {
			page, err := moved.Jobs(t.Context(), sluice.JobFilter{Queue: queue, Limit: 10})
			w.ok(err)
			if len(page.Jobs) != want {
				from, _, _ := strings.Cut(way[0], ":")
				t.Errorf("from %s: %d callbacks in %s, want %d", from, len(page.Jobs), queue, want)
			}
		}
	}
}

// TestAMoveThatIsGivenUpForgetsNoChangeOfABatch gives a move up after it has closed the store. The store's programs run on.
func TestAMoveThatIsGivenUpForgetsNoChangeOfABatch(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{newFile(t), newFile(t)}, {pgtest.NewDatabase(t), newFile(t)}} {
		store := open(t, way[0])
		w := batchWorld{&world{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), random: rand.New(rand.NewPCG(1, 0))}}
		w.advance(1) // the first call of a process looks at all batches
		b := w.open(batch.Batch{Callbacks: batch.Callbacks{OnDeath: &batch.Callback{Queue: "calls"}, OnComplete: &batch.Callback{Queue: "calls"}}})
		revived := w.end(b.ID, sluice.EventBury)
		w.ok(w.client.Requeue(t.Context(), []sluice.ID{revived}, by("again")))
		w.settle(w.claim("plain", 1)[0], sluice.EventComplete)
		w.ok(batch.Close(t.Context(), store, b.ID, by("batch")))
		ctx, stop := context.WithCancel(t.Context())
		if _, err := Run(ctx, way[0], way[1], Options{Progress: func(Progress) { stop() }}); err == nil {
			t.Fatal("the move ended well, want an error after its context ended")
		}
		w.ok(Reopen(t.Context(), way[0]))
		w.advance(3)
		page, err := store.Jobs(t.Context(), sluice.JobFilter{Queue: "calls", Limit: 10})
		w.ok(err)
		if len(page.Jobs) != 2 {
			from, _, _ := strings.Cut(way[0], ":")
			t.Errorf("in %s: %d callbacks, want those of the death and of the end", from, len(page.Jobs))
		}
	}
}
