package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

//go:embed sql/orphans_drop.sql
var orphansDropSQL string

//go:embed sql/orphans_strayed.sql
var orphansStrayedSQL string

// dropOrphans removes jobs in flight whose row in sluice_job was deleted by hand, and audits each.
// The id of such a job is known only if it has a run. Token nil matches any token. dropOrphans
// returns how many it removed; if it fails, the next call that finds the jobs removes them.
func (s *Store) dropOrphans(ctx context.Context, seqs []int64, token []byte, by string) int {
	dropped := 0
	var must any // a nil slice would match an empty token
	if token != nil {
		must = token
	}
	err := s.write(ctx, "drop orphans", func(tx runner, _ bool) error {
		if _, err := tx.exec(orphansStrayedSQL, seqList(seqs), must, now()); err != nil {
			return err
		}
		var count counting
		entries, err := list(tx, func(rows *sql.Rows) (sluice.AuditEntry, error) {
			var seq int64
			var id, batch []byte
			e := sluice.AuditEntry{Object: audit.ObjectJob, Event: audit.EventMissing, Actor: by}
			err := rows.Scan(&seq, &e.Name, &e.Generation, &id, &batch)
			count.add(idOf(batch), sluice.StateCancelled, 1)
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
		return count.put(tx)
	})
	if err != nil {
		return 0
	}
	return dropped
}
