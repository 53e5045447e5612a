package memory

import (
	"context"

	"github.com/sluice-queue/sluice/health"
)

var _ health.Store = (*Store)(nil)

// Health checks nothing: a store in memory has no server, disk or schema that can fail.
func (s *Store) Health(ctx context.Context, _ health.Options) (health.Report, error) {
	return health.Report{Kind: "memory"}, ctx.Err()
}
