package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/orphans_drop.sql
var orphansDropSQL string

//go:embed sql/orphans_strayed.sql
var orphansStrayedSQL string

// dropOrphans takes away those of some jobs in flight whose own row somebody deleted, and tells the audit. Nobody knows the
// id of one without a run. A token of nil is any. It returns how many there were; where that cannot be done now, the next
// who comes upon them does it.
func (s *Store) dropOrphans(ctx context.Context, seqs []int64, token []byte, by string) int {
	dropped := 0
	var must any // a nil slice would be an empty token
	if token != nil {
		must = token
	}
	err := s.write(ctx, "drop orphans", func(tx runner, _ bool) error {
		if _, err := tx.exec(orphansStrayedSQL, seqList(seqs), must, now()); err != nil {
			return err
		}
		entries, err := list(tx, func(rows *sql.Rows) (sluice.AuditEntry, error) {
			var seq int64
			var id []byte
			e := sluice.AuditEntry{Object: sluice.ObjectJob, Event: sluice.EventMissing, Actor: by}
			err := rows.Scan(&seq, &e.Name, &e.Generation, &id)
			e.Reason = fmt.Sprintf("somebody deleted its row in sluice_job, which had seq %d", seq)
			if len(id) > 0 {
				e.JobID = idOf(id)
			}
			return e, err
		}, orphansDropSQL, seqList(seqs), must)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := tell(tx, e); err != nil {
				return err
			}
		}
		dropped = len(entries)
		return nil
	})
	if err != nil {
		return 0
	}
	return dropped
}
