package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

func (s *store) SaveProgress(ctx context.Context, reports []progress.Report) error {
	_, err := do(ctx, s, "save_progress", "", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.progresses.SaveProgress(ctx, reports)
	})
	return err
}

func (s *store) Progress(ctx context.Context, ids []sluice.ID) ([]progress.Report, error) {
	return do(ctx, s, "progress", "", func(ctx context.Context) ([]progress.Report, error) { return s.progresses.Progress(ctx, ids) })
}
