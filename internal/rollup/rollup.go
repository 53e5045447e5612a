// Package rollup is the arithmetic of statistics, which every store does alike: what holders added is merged into slots
// of ten seconds, a minute and an hour, each with its largest tenants.
package rollup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// grace is how long after its end a minute waits for holders that are late. One that comes later is merged all the same,
// it only costs a little more.
const grace = 15 * time.Second

// Ahead is how far in the future a slot may begin: two clocks differ.
const Ahead = time.Minute

// Taken reports whether a slot that a holder adds now is neither too old nor too far ahead.
func Taken(at, now time.Time) bool {
	return !at.Before(now.Add(-stat.FineKept)) && !at.After(now.Add(Ahead))
}

// Part is what one holder added for a queue in a slot: the whole queue, and tenants.
type Part struct {
	At    time.Time
	Queue string
	Stats []stat.Stat
}

// Slot is all that one holder added for an instant.
type Slot struct {
	At    time.Time
	Parts []Part
}

// Split checks what a holder adds and sorts it by slot and queue.
func Split(holder string, stats []stat.Stat) ([]Slot, error) {
	if holder == "" {
		return nil, &sluice.InvalidError{Field: "holder", Rule: "it must not be empty"}
	}
	stats = slices.Clone(stats)
	slices.SortStableFunc(stats, stat.Compare)
	var out []Slot
	for _, s := range stats {
		if err := s.CheckNew(); err != nil {
			return nil, err
		}
		s.At = s.At.UTC()
		if last := len(out) - 1; last < 0 || !out[last].At.Equal(s.At) {
			out = append(out, Slot{At: s.At})
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

// FoldUntil is until when parts are folded: those of minutes that are over.
func FoldUntil(now time.Time) time.Time { return now.UTC().Add(-grace).Truncate(stat.Minute) }

// Key names a stored slot of a queue.
type Key struct {
	Every time.Duration
	At    time.Time
	Queue string
}

// Row is a slot of a queue: what happened in the whole, and of its tenants.
type Row struct {
	Key
	Whole   stat.Stat
	Tenants map[string]*stat.Stat
}

// NewRow is a slot in which nothing happened.
func NewRow(key Key) *Row {
	return &Row{
		Key: key, Tenants: make(map[string]*stat.Stat),
		Whole: stat.Stat{Queue: key.Queue, At: key.At, Every: key.Every},
	}
}

// Add counts what happened in a part of the slot, of the queue or of a tenant.
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

// Merge counts what another row of the slot holds.
func (r *Row) Merge(other *Row) {
	r.Add(other.Whole)
	for _, t := range other.Tenants {
		r.Add(*t)
	}
}

// Cut forgets all tenants but the largest.
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

// Rows are slots by their names.
type Rows map[Key]*Row

// Row finds a slot, or makes it.
func (rows Rows) Row(key Key) *Row {
	r := rows[key]
	if r == nil {
		r = NewRow(key)
		rows[key] = r
	}
	return r
}

// Add counts a part in the slot of a kind that it belongs to.
func (rows Rows) Add(part Part, every time.Duration) {
	r := rows.Row(Key{every, part.At.UTC().Truncate(every), part.Queue})
	for _, s := range part.Stats {
		r.Add(s)
	}
}

// Fold counts parts in the slots of every kind, and gives those in order.
func Fold(parts []Part) []*Row {
	rows := make(Rows)
	for _, p := range parts {
		for _, slot := range stat.Slots() {
			rows.Add(p, slot.Every)
		}
	}
	return rows.Sorted()
}

// Sorted gives the slots in an order in which everybody writes them.
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

// List gives what a filter asks for of slots that the store chose by queue and time.
func (rows Rows) List(filter stat.Filter) []stat.Stat {
	var out []stat.Stat
	for _, r := range rows {
		if filter.Tenant != "" {
			if t := r.Tenants[filter.Tenant]; t != nil {
				out = append(out, *t)
			}
			continue
		}
		out = append(out, r.Whole)
		if filter.Tenants {
			for _, t := range r.Tenants {
				out = append(out, *t)
			}
		}
	}
	slices.SortFunc(out, stat.Compare)
	return out[:min(len(out), filter.Limit)]
}
