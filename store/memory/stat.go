package memory

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/internal/rollup"
	"github.com/sluice-queue/sluice/stat"
)

var _ stat.Store = (*Store)(nil)

// statistics are the counts that holders added.
type statistics struct {
	parts []rollup.Part        // not merged yet
	last  map[string]time.Time // by holder: its last bucket
	rows  rollup.Rows
}

// AddStats stores the counts of a holder.
func (s *Store) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	slots, err := rollup.Split(holder, stats)
	if err != nil {
		return err
	}
	s.addBuckets(holder, slots)
	return nil
}

// takeStats adds the counts of the store itself.
func (s *Store) takeStats() {
	stats := s.tally.Take(s.now())
	if slots, err := rollup.Split(s.tally.Holder(), stats); err == nil {
		s.addBuckets(s.tally.Holder(), slots)
	}
}

func (s *Store) addBuckets(holder string, slots []rollup.Bucket) {
	for _, slot := range slots {
		if !rollup.Taken(slot.At, s.now()) {
			continue
		}
		if last, known := s.stats.last[holder]; known && !slot.At.After(last) {
			continue
		}
		s.stats.last[holder] = slot.At
		for _, part := range slot.Parts {
			s.stats.parts = append(s.stats.parts, copyOf(part))
		}
	}
}

// copyOf returns a copy that shares no memory with the holder's counters.
func copyOf(part rollup.Part) rollup.Part {
	stats := make([]stat.Stat, len(part.Stats))
	for i, s := range part.Stats {
		stats[i] = stat.Stat{Queue: s.Queue, Tenant: s.Tenant, At: s.At, Every: s.Every}
		stats[i].Merge(s)
	}
	part.Stats = stats
	return part
}

// Stats lists buckets.
func (s *Store) Stats(ctx context.Context, filter stat.Filter) ([]stat.Stat, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.takeStats()
	chosen := make(rollup.Rows)
	for key, row := range s.stats.rows {
		if key.Every == filter.Every && rollup.Chosen(filter, key.Queue, key.At) {
			chosen.Row(key).Merge(row)
		}
	}
	for _, part := range s.stats.parts {
		chosen.AddChosen(part, filter)
	}
	return chosen.List(filter), nil
}

// CountStartFailed counts a run that an engine did not start.
func (s *Store) CountStartFailed(queue, tenant string) { s.tally.StartFailed(queue, tenant) }

// FoldStats merges added counts, and deletes old buckets.
func (s *Store) FoldStats(ctx context.Context, limit int) (int, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	s.takeStats()
	until := rollup.FoldUntil(s.now())
	var folded, rest []rollup.Part
	for _, part := range s.stats.parts {
		if len(folded) < limit && part.At.Before(until) {
			folded = append(folded, part)
		} else {
			rest = append(rest, part)
		}
	}
	s.stats.parts = rest
	for _, added := range rollup.Fold(folded) {
		row := s.stats.rows.Row(added.Key)
		row.Merge(added)
		row.Cut()
	}
	return len(folded) + s.forgetBuckets(limit), nil
}

// forgetBuckets deletes buckets after their retention, and holders whose last bucket is too old to be
// accepted.
func (s *Store) forgetBuckets(limit int) int {
	forgotten := 0
	for _, slot := range stat.Slots() {
		for key := range s.stats.rows {
			if forgotten < limit && key.Every == slot.Every && key.At.Before(s.now().Add(-slot.Kept)) {
				delete(s.stats.rows, key)
				forgotten++
			}
		}
	}
	for holder, last := range s.stats.last {
		if last.Before(s.now().Add(-stat.FineKept)) {
			delete(s.stats.last, holder)
		}
	}
	return forgotten
}
