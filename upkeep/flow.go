package upkeep

import (
	"context"

	"github.com/sluice-queue/sluice/flow"
)

// flowsGoOn does the work of flows that is due: maps, and ends of flows. The next round does what is left.
func (u *Upkeep) flowsGoOn(ctx context.Context, done *Done) (err error) {
	done.Flows, err = flow.Work(ctx, u.store, u.holder.ID, u.options.PayloadChecker)
	return err
}
