package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
)

func (s *store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	_, err := do(ctx, s, "edit_job", "", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.edits.EditJob(ctx, e, act) })
	return err
}
