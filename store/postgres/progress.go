package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

//go:embed sql/progress.sql
var progressSQL string

//go:embed sql/progress_save.sql
var progressSaveSQL string

//go:embed sql/progress_forget.sql
var progressForgetSQL string

// SaveProgress stores how far claimed jobs have come.
func (s *Store) SaveProgress(ctx context.Context, reports []progress.Report) error {
	n := len(reports)
	ids, tokens, fractions, messages := make(uuidArray, n), make(uuidArray, n), make([]float64, n), make([]string, n)
	for k, i := range sortedByID(n, func(i int) sluice.ID { return reports[i].JobID }) {
		r := reports[i]
		ids[k], tokens[k], fractions[k], messages[k] = r.JobID, sluice.ID(r.Token), r.Fraction, sluice.StoredText(r.Message)
	}
	return s.call(ctx, "save progress", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, progressSaveSQL, ids, tokens, fractions, messages)
	})
}

// Progress returns how far jobs have come that run and have reported.
func (s *Store) Progress(ctx context.Context, ids []sluice.ID) (reports []progress.Report, err error) {
	err = s.call(ctx, "look for progress", func(ctx context.Context, _ bool) (err error) {
		reports, err = list(ctx, s.pool, scanReport, progressSQL, uuids(ids))
		return err
	})
	return reports, err
}

func scanReport(row pgx.CollectableRow) (r progress.Report, err error) {
	var id pgtype.UUID
	var at pgtype.Timestamptz
	err = row.Scan(&id, &r.Fraction, &r.Message, &at)
	r.JobID, r.At = idOf(id), timeOf(at)
	return r, err
}

// forgetProgress deletes reports of attempts that have ended, until few are left.
func (s *Store) forgetProgress(ctx context.Context, limit int) error {
	for {
		var gone int64
		err := s.call(ctx, "forget progress", func(ctx context.Context, _ bool) error {
			tag, err := s.pool.Exec(ctx, progressForgetSQL, limit)
			gone = tag.RowsAffected()
			return err
		})
		if err != nil || gone < int64(limit) {
			return err
		}
	}
}
