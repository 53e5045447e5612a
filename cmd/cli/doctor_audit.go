package cli

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/health"
)

// sealPatience is how long audit entries may wait for a seal. Upkeep seals each minute.
const sealPatience = 10 * time.Minute

// examineAudit checks that no audit entry waits long for a seal. A store without a chain gives no finding.
func examineAudit(ctx context.Context, store sluice.Store) ([]finding, error) {
	chain, err := audit.Of(store)
	if err != nil {
		return nil, nil //nolint:nilerr // a store of somebody else's, which has none
	}
	since, now, err := audit.Waiting(ctx, chain)
	if err != nil {
		return nil, err
	}
	if since.IsZero() || now.Sub(since) <= sealPatience {
		return []finding{well("audit", "no entry waits long for a seal")}, nil
	}
	return []finding{{
		Check: "audit", Severity: health.SeverityWarning, What: "entries of the audit wait for a seal for " + draw.Duration(now.Sub(since)),
		Why: "who owns the tables can change an entry that is not sealed, and nobody would find out",
		Repair: "sluice upkeep; if it runs, look for `seal the audit` in its log, and for a transaction that stays open: " +
			"no entry is sealed while one may still add an entry before it",
	}}, nil
}
