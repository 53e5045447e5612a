// Package rollup is the arithmetic of statistics that all stores share. Holders add counts in
// buckets of 10 s. Upkeep merges them into buckets of 10 s, 1 min and 1 h, each with its largest
// tenants.
//
// Begin with [Split], which checks the counts that a holder adds, and [Fold], which merges them
// into [Rows]. encode.go holds the form in which the SQL stores keep them.
//
// Read next: docs/guide/statistics.md, and stat.go of package memory, the simplest store.
package rollup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// grace is how long after its end a minute waits for late holders. Counts that come later are
// merged, too, at a little more cost.
const grace = 15 * time.Second

// Ahead is how far in the future a bucket may begin, because two clocks differ.
const Ahead = time.Minute

// Taken reports whether a bucket that a holder adds now is not too old and not too far ahead.
func Taken(at, now time.Time) bool {
	return !at.Before(now.Add(-stat.FineKept)) && !at.After(now.Add(Ahead))
}

// Part is the counts of one holder for a queue in a bucket: the whole queue, and tenants.
type Part struct {
	At    time.Time
	Queue string
	Stats []stat.Stat
}

// Slot is all counts that one holder added for an instant.
type Bucket struct {
	At    time.Time
	Parts []Part
}

// Split checks the counts that a holder adds, and sorts them by bucket and queue.
func Split(holder string, stats []stat.Stat) ([]Bucket, error) {
	if holder == "" {
		return nil, &sluice.InvalidError{Field: "holder", Rule: "it must not be empty"}
	}
	stats = slices.Clone(stats)
	slices.SortStableFunc(stats, stat.Compare)
	var out []Bucket
	for _, s := range stats {
		if err := s.CheckNew(); err != nil {
			return nil, err
		}
		s.At = s.At.UTC()
		if last := len(out) - 1; last < 0 || !out[last].At.Equal(s.At) {
			out = append(out, Bucket{At: s.At})
		}
		slot := &out[len(out)-1]
		if last := len(slot.Parts) - 1; last < 0 || slot.Parts[last].Queue != s.Queue {
			slot.Parts = append(slot.Parts, Part{At: s.At, Queue: s.Queue})
		}
		part := &slot.Parts[len(slot.Parts)-1]
		part.Stats = append(part.Stats, s)
	}
	return out, nil
}

// FoldUntil returns the instant up to which parts are merged: the end of the last complete minute,
// minus the grace.
func FoldUntil(now time.Time) time.Time { return now.UTC().Add(-grace).Truncate(stat.Minute) }

// Key identifies a stored bucket of a queue.
type Key struct {
	Every time.Duration
	At    time.Time
	Queue string
}

// Row is a bucket of a queue: the counts of the whole queue, and of its tenants.
type Row struct {
	Key
	Whole   stat.Stat
	Tenants map[string]*stat.Stat
}

// NewRow returns an empty bucket.
func NewRow(key Key) *Row {
	return &Row{
		Key: key, Tenants: make(map[string]*stat.Stat),
		Whole: stat.Stat{Queue: key.Queue, At: key.At, Every: key.Every},
	}
}

// Add adds a part's counts of the queue or of a tenant.
func (r *Row) Add(s stat.Stat) {
	if s.Tenant == "" {
		r.Whole.Merge(s)
		return
	}
	t := r.Tenants[s.Tenant]
	if t == nil {
		t = &stat.Stat{Queue: r.Queue, Tenant: s.Tenant, At: r.At, Every: r.Every}
		r.Tenants[s.Tenant] = t
	}
	t.Merge(s)
}

// Merge adds the counts of another row of the bucket.
func (r *Row) Merge(other *Row) {
	r.Add(other.Whole)
	for _, t := range other.Tenants {
		r.Add(*t)
	}
}

// Cut drops all tenants but the largest.
func (r *Row) Cut() {
	if len(r.Tenants) <= stat.MaxTenants {
		return
	}
	ranked := make([]*stat.Stat, 0, len(r.Tenants))
	for _, t := range r.Tenants {
		ranked = append(ranked, t)
	}
	slices.SortFunc(ranked, func(a, b *stat.Stat) int {
		return cmp.Or(cmp.Compare(b.Counts.Sum(), a.Counts.Sum()), strings.Compare(a.Tenant, b.Tenant))
	})
	for _, t := range ranked[stat.MaxTenants:] {
		delete(r.Tenants, t.Tenant)
	}
}

// Rows are buckets by their keys.
type Rows map[Key]*Row

// Row returns a bucket, and creates it if it is missing.
func (rows Rows) Row(key Key) *Row {
	r := rows[key]
	if r == nil {
		r = NewRow(key)
		rows[key] = r
	}
	return r
}

// Add counts a part in the bucket of length every that it belongs to.
func (rows Rows) Add(part Part, every time.Duration) {
	r := rows.Row(Key{every, part.At.UTC().Truncate(every), part.Queue})
	for _, s := range part.Stats {
		r.Add(s)
	}
}

// Fold counts parts in the buckets of every length, and returns these in order.
func Fold(parts []Part) []*Row {
	rows := make(Rows)
	for _, p := range parts {
		for _, slot := range stat.Slots() {
			rows.Add(p, slot.Every)
		}
	}
	return rows.Sorted()
}

// Sorted returns the buckets in the order in which all processes write them.
func (rows Rows) Sorted() []*Row {
	out := make([]*Row, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Every, b.Every), a.At.Compare(b.At), strings.Compare(a.Queue, b.Queue))
	})
	return out
}

// List returns the statistics that a filter asks for. The store has chosen the buckets by queue and
// time.
func (rows Rows) List(filter stat.Filter) []stat.Stat {
	var out []stat.Stat
	for _, r := range rows {
		if filter.Tenant != "" {
			if t := r.Tenants[filter.Tenant]; t != nil {
				out = append(out, *t)
			}
			continue
		}
		if r.Whole.Counts != (stat.Counts{}) || filter.Levels {
			out = append(out, r.Whole)
		}
		if filter.Tenants {
			for _, t := range r.Tenants {
				out = append(out, *t)
			}
		}
	}
	slices.SortFunc(out, stat.Compare)
	return out[:min(len(out), filter.Limit)]
}
