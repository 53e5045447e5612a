package audit

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// SearchUntil is Search with another end of its time.
func SearchUntil(ctx context.Context, store sluice.Store, f Filter, until time.Time) (Page, error) {
	s := search{store: store, filter: f, until: until}
	if err := s.bound(ctx); err != nil {
		return Page{}, err
	}
	return s.page(ctx)
}
