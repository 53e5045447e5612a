package audit

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Filter chooses entries for [Search].
type Filter struct {
	sluice.AuditFilter
	// From and To choose the entries from From on and before To. Zero: any time.
	From, To time.Time
}

// Page is what [Search] found.
type Page struct {
	// Entries match, and the newest comes first.
	Entries []sluice.AuditEntry `json:"entries"`
	// Next is the Before of the next page. 0: the search has reached the end. A page may have few entries or none
	// although Next is not 0: the search then ended at its bound, and the next page goes on from there.
	Next int64 `json:"next,omitempty"`
}

// Searcher is a store that searches its audit by itself, such as one behind a server.
type Searcher interface {
	SearchAudit(ctx context.Context, f Filter) (Page, error)
}

// The bounds of one search. An actor or an event has no index: most stores have few of both, and an index would cost
// each move of a job a write. So a search reads the entries of a range of numbers at a time, until its page is full
// or its time is over.
const (
	searchRange = 100_000
	searchTime  = time.Second
)

// skew is how many numbers an entry may be away from its place by time, because transactions that run beside each
// other take the time and the number apart.
const skew = 1000

// Search lists entries by all fields of the filter, the newest first. A Limit outside of 1 to 10,000 is a
// [sluice.ErrInvalid]; 0 is 100. It stops after about 1 s with what it has found; see Next of [Page].
func Search(ctx context.Context, store sluice.Store, f Filter) (Page, error) {
	limit, err := feature.PageSize(f.Limit)
	if err != nil {
		return Page{}, err
	}
	if err := sluice.CheckGiven("store", store); err != nil {
		return Page{}, err
	}
	f.Limit = limit
	if other, is := sluice.StoreAs[Searcher](store); is {
		return other.SearchAudit(ctx, f)
	}
	s := search{store: store, filter: f, until: time.Now().Add(searchTime)}
	if err := s.bound(ctx); err != nil {
		return Page{}, err
	}
	return s.page(ctx)
}

// search is a search between two numbers, both of which it leaves out.
type search struct {
	store         sluice.Store
	filter        Filter
	before, after int64
	until         time.Time
}

// unindexed reports whether the filter has fields without an index.
func (s *search) unindexed() bool { return s.filter.Actor != "" || s.filter.Event != "" }

// bound finds the numbers between which the entries are.
func (s *search) bound(ctx context.Context) error {
	if !s.unindexed() && s.filter.From.IsZero() && s.filter.To.IsZero() {
		s.before, s.after = cmp.Or(s.filter.Before, math.MaxInt64), s.filter.After
		return nil
	}
	newest, err := s.store.Audit(ctx, sluice.AuditFilter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}
	s.before, s.after = newest[0].Seq+1, s.filter.After
	if s.filter.Before > 0 {
		s.before = min(s.before, s.filter.Before)
	}
	if !s.filter.To.IsZero() {
		seq, err := s.first(ctx, s.filter.To, newest[0])
		if err != nil {
			return err
		}
		s.before = min(s.before, seq+skew)
	}
	if !s.filter.From.IsZero() {
		seq, err := s.first(ctx, s.filter.From, newest[0])
		if err != nil {
			return err
		}
		s.after = max(s.after, seq-1-skew)
	}
	return nil
}

// first returns the number of the first entry that is not older than an instant, by halves: numbers and times grow
// together. If there is none, it returns the number after the newest.
func (s *search) first(ctx context.Context, at time.Time, newest sluice.AuditEntry) (int64, error) {
	low, high := int64(0), newest.Seq+1
	if !newest.At.Before(at) {
		high = newest.Seq
	}
	for low < high {
		middle := low + (high-low)/2
		found, err := s.store.Audit(ctx, sluice.AuditFilter{Before: middle + 1, Limit: 1})
		if err != nil {
			return 0, err
		}
		if len(found) == 0 || found[0].At.Before(at) {
			low = middle + 1
		} else {
			high = found[0].Seq
		}
	}
	return high, nil
}

// page reads one range after the other.
func (s *search) page(ctx context.Context) (page Page, err error) {
	wide := int64(math.MaxInt64)
	if s.unindexed() {
		wide = searchRange
	}
	for s.before-1 > s.after {
		ask := s.filter.AuditFilter
		ask.Before, ask.After, ask.Limit = s.before, max(s.after, s.before-1-wide), s.filter.Limit-len(page.Entries)
		found, err := s.store.Audit(ctx, ask)
		if err != nil {
			return page, err
		}
		page.Entries = append(page.Entries, s.inTime(found)...)
		if s.before = ask.After + 1; len(found) == ask.Limit {
			s.before = found[len(found)-1].Seq
		}
		if s.before-1 > s.after && (len(page.Entries) == s.filter.Limit || time.Now().After(s.until)) {
			page.Next = s.before
			break
		}
	}
	return page, nil
}

// inTime keeps the entries of the time that is asked for.
func (s *search) inTime(found []sluice.AuditEntry) (kept []sluice.AuditEntry) {
	for _, e := range found {
		if !e.At.Before(s.filter.From) && (s.filter.To.IsZero() || e.At.Before(s.filter.To)) {
			kept = append(kept, e)
		}
	}
	return kept
}
