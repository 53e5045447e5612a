package storetest

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

// modelBatch is what the model knows of a batch; it counts the jobs themselves.
type modelBatch struct {
	id, parent                        sluice.ID
	closed, complete, succeeded, died bool // died: a job has died, in it or in the one in it
	told                              bool // upkeep has seen that
	callbacks                         int
}

// openBatches opens the batches of a run: one that is in another one, and that one.
func (m *machine) openBatches() {
	var parent sluice.ID
	for range 2 {
		callback := &batch.Callback{Queue: m.queue + "-calls"}
		b, err := batch.Open(m.ctx, m.bench.Store, batch.Batch{Parent: parent, Callbacks: batch.Callbacks{OnComplete: callback, OnSuccess: callback, OnDeath: callback}}, person("model"))
		m.must(err)
		m.batches = append(m.batches, &modelBatch{id: b.ID, parent: parent})
		parent = b.ID
	}
}

// drawBatch puts a job into a batch, or none.
func (m *machine) drawBatch(t *rapid.T) (id sluice.ID, open bool) {
	n := rapid.IntRange(-2, len(m.batches)-1).Draw(t, "batch")
	if n < 0 {
		return sluice.ID{}, true
	}
	return m.batches[n].id, !m.batches[n].closed
}

// agreeOnRefusal makes sure that the store refuses a job of a closed batch.
func (m *machine) agreeOnRefusal(err error) {
	m.Helper()
	var refused *sluice.BatchError
	if !errors.As(err, &refused) || !errors.Is(refused.Failed[0], sluice.ErrNotAllowed) {
		m.Fatalf("enqueue into a closed batch: %v, want ErrNotAllowed", err)
	}
}

func (m *machine) closeBatch(t *rapid.T) {
	b := rapid.SampledFrom(m.batches).Draw(t, "batch to close")
	m.tick()
	m.must(batch.Close(m.ctx, m.store(t), b.id, person("model")))
	b.closed = true
}

func (m *machine) advanceBatches(t *rapid.T) {
	m.tick()
	got := 0
	for range 10 {
		out, err := batch.Given(m.store(t)).AdvanceBatches(m.ctx, 10_000)
		m.must(err)
		got += out.Callbacks
		if out.Changes == 0 {
			break
		}
	}
	want := 0
	for i := len(m.batches) - 1; i >= 0; i-- { // the inner one first
		want += m.decide(m.batches[i])
	}
	if got < want { // other runs share the store
		m.Fatalf("%d callbacks, want %d", got, want)
	}
}

// decide does for the model what upkeep does, and returns how many callbacks follow.
func (m *machine) decide(b *modelBatch) (callbacks int) {
	counts, inner := m.count(b.id), m.inner(b)
	become := func(is *bool) {
		*is = true
		callbacks++
	}
	if !b.complete && b.closed && counts.Unfinished() == 0 && (inner == nil || inner.complete) {
		become(&b.complete)
	}
	if !b.succeeded && b.complete && counts.Completed == counts.Total && (inner == nil || inner.succeeded) {
		become(&b.succeeded)
	}
	if b.died && !b.told {
		become(&b.told)
	}
	b.callbacks += callbacks
	return callbacks
}

// inner is the batch in a batch. Nil: none.
func (m *machine) inner(b *modelBatch) *modelBatch {
	for _, other := range m.batches {
		if other.parent == b.id {
			return other
		}
	}
	return nil
}

// count counts the jobs of a batch.
func (m *machine) count(id sluice.ID) (c batch.Counts) {
	for _, job := range m.jobs {
		if job.batch != id {
			continue
		}
		c.Total++
		switch job.state {
		case sluice.StateCompleted:
			c.Completed++
		case sluice.StateDead:
			c.Dead++
		case sluice.StateCancelled:
			c.Cancelled++
		}
	}
	return c
}

// agreeOnBatches makes sure that the store counts as the model does, and knows what has become of each batch.
func (m *machine) agreeOnBatches() {
	for _, b := range m.batches {
		want := m.count(b.id)
		for outer := b; outer != nil && want.Dead > 0; outer = m.outer(outer) {
			outer.died = true
		}
		got, err := batch.Read(m.ctx, m.bench.Store, b.id)
		m.must(err)
		if got.Counts != want {
			m.Fatalf("the store counts %+v in batch %s, the model %+v", got.Counts, b.id, want)
		}
		text := fmt.Sprintf("closed %t, complete %t, succeeded %t, told of a death %t", b.closed, b.complete, b.succeeded, b.told)
		is := fmt.Sprintf("closed %t, complete %t, succeeded %t, told of a death %t", !got.ClosedAt.IsZero(), !got.CompletedAt.IsZero(), !got.SucceededAt.IsZero(), !got.DiedAt.IsZero())
		if text != is {
			m.Fatalf("batch %s is %s, the model says %s", b.id, is, text)
		}
	}
	if len(m.batches) > 0 && m.batches[0].callbacks+m.batches[1].callbacks > 0 {
		m.agreeOnCallbacks()
	}
}

// agreeOnCallbacks makes sure that each callback is stored once.
func (m *machine) agreeOnCallbacks() {
	depth, err := m.bench.Store.Depth(m.ctx, m.queue+"-calls", 100)
	m.must(err)
	if want := m.batches[0].callbacks + m.batches[1].callbacks; depth.Ready != want {
		m.Fatalf("%d callbacks are stored, want %d", depth.Ready, want)
	}
}

// outer is the batch that a batch is in. Nil: none.
func (m *machine) outer(b *modelBatch) *modelBatch {
	for _, other := range m.batches {
		if other.id == b.parent {
			return other
		}
	}
	return nil
}
