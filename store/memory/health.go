package memory

import (
	"context"

	"github.com/sluice-queue/sluice"
)

var _ sluice.HealthReporter = (*Store)(nil)

// Health has nothing to look at: memory is well, or the process is gone.
func (s *Store) Health(ctx context.Context, _ sluice.HealthOptions) (sluice.Health, error) {
	return sluice.Health{Kind: "memory"}, ctx.Err()
}
