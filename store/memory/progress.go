package memory

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

// SaveProgress stores how far claimed jobs have come.
func (s *Store) SaveProgress(ctx context.Context, reports []progress.Report) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range reports {
		j := s.jobs[r.JobID]
		if j != nil && j.live && j.State == sluice.StateClaimed && r.Token.Proves(j.token) {
			r.At = s.now()
			j.report = &r
		}
	}
	return nil
}

// Progress returns how far jobs have come that run and have reported.
func (s *Store) Progress(ctx context.Context, ids []sluice.ID) (reports []progress.Report, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, id := range ids {
		j := s.jobs[id]
		if j != nil && j.live && j.State == sluice.StateClaimed && j.report != nil && j.report.Token.Proves(j.token) {
			r := *j.report
			r.Token = sluice.Token{}
			reports = append(reports, r)
		}
	}
	return reports, nil
}
