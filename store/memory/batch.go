package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
)

var _ batch.Store = (*Store)(nil)

// storedBatch is a batch as the store keeps it.
type storedBatch struct {
	batch.Batch
	died  bool           // a job has died, in the batch or in one in it
	inner []*storedBatch // the batches directly in it
}

// countMember changes a count of a job's batch, if it has one.
func (s *Store) countMember(j *job, outcome sluice.State, jobs int) {
	b := s.batches[j.Batch]
	if b == nil {
		return
	}
	switch outcome {
	case sluice.StateCompleted:
		b.Completed += jobs
	case sluice.StateDead:
		b.Dead += jobs
		b.died = b.died || jobs > 0
	case sluice.StateCancelled:
		b.Cancelled += jobs
	default:
		b.Total += jobs
	}
	s.changed[b.ID] = b
}

// tree lists a batch and all batches in it, the batch itself first. None: it is not stored.
func (s *Store) tree(id sluice.ID) []*storedBatch {
	root := s.batches[id]
	if root == nil {
		return nil
	}
	out := []*storedBatch{root}
	for n := 0; n < len(out); n++ {
		out = append(out, out[n].inner...)
	}
	return out
}

// view returns a batch as callers see it.
func (s *Store) view(b *storedBatch) batch.Batch {
	out := b.Batch
	out.Now = s.now().UTC()
	for _, inner := range b.inner {
		out.Batches++
		if !inner.CompletedAt.IsZero() {
			out.BatchesComplete++
		}
	}
	return out
}

// OpenBatch stores a new batch.
func (s *Store) OpenBatch(ctx context.Context, one batch.Batch, _ sluice.Act) (batch.Batch, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return batch.Batch{}, err
	}
	defer leave()
	if stored := s.batches[one.ID]; stored != nil {
		return s.view(stored), nil
	}
	parent := s.batches[one.Parent]
	if !one.Parent.IsZero() {
		if err := batch.Refusal(one.Parent, parent != nil, parent != nil && parent.ClosedAt.IsZero()); err != nil {
			return batch.Batch{}, err
		}
		one.Paused = parent.Paused
	}
	one.CreatedAt = s.now().UTC()
	s.batches[one.ID] = &storedBatch{Batch: one}
	s.unfinished[one.ID] = true
	if parent != nil {
		parent.inner = append(parent.inner, s.batches[one.ID])
	}
	return s.view(s.batches[one.ID]), nil
}

// CloseBatch closes a batch.
func (s *Store) CloseBatch(ctx context.Context, id sluice.ID, all bool, _ sluice.Act) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	tree := s.tree(id)
	if len(tree) == 0 {
		return sluice.ErrNotFound
	}
	if !all {
		tree = tree[:1]
	}
	for _, b := range tree {
		if b.ClosedAt.IsZero() {
			b.ClosedAt = s.now().UTC()
			s.changed[b.ID] = b
		}
	}
	return nil
}

// Batch returns a batch with its counts.
func (s *Store) Batch(ctx context.Context, id sluice.ID) (batch.Batch, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return batch.Batch{}, err
	}
	defer leave()
	b := s.batches[id]
	if b == nil {
		return batch.Batch{}, sluice.ErrNotFound
	}
	return s.view(b), nil
}

// Batches lists batches, the newest first.
func (s *Store) Batches(ctx context.Context, filter batch.Filter) ([]batch.Batch, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []batch.Batch
	for id, b := range s.batches {
		if (filter.Parent.IsZero() || b.Parent == filter.Parent) && (!filter.Unfinished || b.CompletedAt.IsZero()) &&
			(filter.Before.IsZero() || bytes.Compare(id[:], filter.Before[:]) < 0) {
			out = append(out, s.view(b))
		}
	}
	slices.SortFunc(out, func(a, b batch.Batch) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return out[:min(len(out), filter.Limit)], nil
}

// PauseBatch sets why a batch and all batches in it are paused.
func (s *Store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error {
	return s.once(ctx, audit.ObjectBatch, id.String(), act, func() error {
		tree := s.tree(id)
		if len(tree) == 0 {
			return sluice.ErrNotFound
		}
		event := audit.EventPause
		if reason == "" {
			event = audit.EventResume
		}
		for _, b := range tree {
			if b.Paused != reason {
				b.Paused = reason
				s.add(sluice.AuditEntry{Object: audit.ObjectBatch, Name: b.ID.String(), Event: event, Actor: act.By, Reason: act.Reason, ActID: act.ID})
			}
		}
		return nil
	})
}

// AdvanceBatches looks at batches that have changed, and enqueues the callbacks of those of which something has become.
func (s *Store) AdvanceBatches(ctx context.Context, limit int) (out batch.Advanced, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return out, err
	}
	defer leave()
	var jobs []sluice.Insert
	for _, b := range s.takeChanged(limit) {
		out.Changes++
		jobs = append(jobs, s.decide(b)...)
	}
	var queues []sluice.Queue
	for _, name := range batch.QueuesOf(jobs) {
		queues = append(queues, s.queues[name])
	}
	out.Callbacks, jobs = len(jobs), batch.BySettings(jobs, queues)
	receipts := make([]sluice.Receipt, len(jobs))
	for i, job := range jobs {
		receipts[i] = s.enqueue(job)
	}
	for _, queue := range batch.QueuesOf(jobs) {
		s.signal(sluice.Signal{Queue: queue})
	}
	s.tally.Enqueued(jobs, receipts)
	out.Open = len(s.unfinished) > 0
	return out, nil
}

// takeChanged lists batches at which upkeep is to look, and notes that it does.
func (s *Store) takeChanged(limit int) []*storedBatch {
	out := slices.SortedFunc(maps.Values(s.changed), func(a, b *storedBatch) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	out = out[:min(len(out), limit)]
	for _, b := range out {
		delete(s.changed, b.ID)
	}
	return out
}

// decide stores what has become of a batch, and lets upkeep look at the batch that it is in.
func (s *Store) decide(b *storedBatch) []sluice.Insert {
	look := batch.Look{Batch: s.view(b), Died: b.died}
	for _, inner := range b.inner {
		if inner.CompletedAt.IsZero() {
			look.Behind++
		}
		if inner.SucceededAt.IsZero() {
			look.Failed++
		}
	}
	after, jobs := look.Decide(look.Batch.Now)
	if !after.Changed(look.Batch) {
		return nil
	}
	b.CompletedAt, b.SucceededAt, b.DiedAt = after.CompletedAt, after.SucceededAt, after.DiedAt
	if !b.CompletedAt.IsZero() {
		delete(s.unfinished, b.ID)
	}
	if parent := s.batches[b.Parent]; parent != nil {
		parent.died = parent.died || !b.DiedAt.IsZero()
		s.changed[parent.ID] = parent
	}
	return jobs
}

// ForgetBatches deletes batches that were complete long ago.
func (s *Store) ForgetBatches(ctx context.Context, age time.Duration, limit int) (gone int, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	for _, b := range slices.SortedFunc(maps.Values(s.batches), func(a, b *storedBatch) int { return a.CompletedAt.Compare(b.CompletedAt) }) {
		old := !b.CompletedAt.IsZero() && !b.CompletedAt.After(s.now().Add(-age))
		if old && gone < limit && s.batches[b.Parent] == nil && b.Unfinished() == 0 {
			delete(s.batches, b.ID)
			delete(s.changed, b.ID)
			gone++
		}
	}
	return gone, nil
}

// RecountBatch counts the jobs of a batch one by one.
func (s *Store) RecountBatch(ctx context.Context, id sluice.ID) (out batch.Recount, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return out, err
	}
	defer leave()
	b := s.batches[id]
	if b == nil {
		return out, sluice.ErrNotFound
	}
	out.Batch = s.view(b)
	for _, j := range s.jobs {
		if j.Batch != id {
			continue
		}
		switch {
		case j.live:
			out.Unfinished++
			continue
		case j.State == sluice.StateCompleted:
			out.Ended.Completed++
		case j.State == sluice.StateDead:
			out.Ended.Dead++
		default:
			out.Ended.Cancelled++
		}
		out.Ended.Total++
	}
	return out, nil
}

// enterBatch returns why a job cannot be added to its batch, unless it is sent again. A job of a paused batch is held.
func (s *Store) enterBatch(in *sluice.Insert) error {
	if in.Batch.IsZero() {
		return nil
	}
	b := s.batches[in.Batch]
	if err := batch.Refusal(in.Batch, b != nil, b != nil && b.ClosedAt.IsZero()); err != nil {
		return err
	}
	if b.Paused != "" && in.Hold == "" {
		in.Hold = batch.HoldReason(in.Batch, b.Paused)
	}
	return nil
}
