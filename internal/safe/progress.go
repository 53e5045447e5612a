package safe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

func (s store) SaveProgress(ctx context.Context, reports []progress.Report) (err error) {
	defer s.caught(&err)
	return s.progresses.SaveProgress(ctx, reports)
}

func (s store) Progress(ctx context.Context, ids []sluice.ID) (_ []progress.Report, err error) {
	defer s.caught(&err)
	return s.progresses.Progress(ctx, ids)
}
