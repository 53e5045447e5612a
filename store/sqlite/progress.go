package sqlite

import (
	"context"
	"database/sql"
	_ "embed"

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
	ids := make([]sluice.ID, len(reports))
	for i, r := range reports {
		ids[i] = r.JobID
	}
	return s.write(ctx, "save progress", func(tx runner, _ bool) error {
		rows, err := heldRows(tx, ids)
		if err != nil {
			return err
		}
		for _, r := range reports {
			row, lives := rows[r.JobID]
			if !lives || row.state != sluice.StateClaimed || !r.Token.Proves(row.token) {
				continue
			}
			if _, err := tx.exec(progressSaveSQL, row.seq, r.Fraction, sluice.StoredText(r.Message), now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Progress returns how far jobs have come that run and have reported.
func (s *Store) Progress(ctx context.Context, ids []sluice.ID) (reports []progress.Report, err error) {
	err = s.read(ctx, "look for progress", func(tx runner) (err error) {
		reports, err = list(tx, scanReport, progressSQL, idList(ids))
		return err
	})
	return reports, err
}

func scanReport(rows *sql.Rows) (r progress.Report, err error) {
	var id []byte
	var at int64
	err = rows.Scan(&id, &r.Fraction, &r.Message, &at)
	r.JobID, r.At = idOf(id), timeOf(&at)
	return r, err
}

// forgetProgress deletes reports of attempts that have ended, until few are left.
func (s *Store) forgetProgress(ctx context.Context, limit int) error {
	for {
		var gone int64
		err := s.write(ctx, "forget progress", func(tx runner, _ bool) (err error) {
			gone, err = affected(tx.exec(progressForgetSQL, limit))
			return err
		})
		if err != nil || gone < int64(limit) {
			return err
		}
	}
}
