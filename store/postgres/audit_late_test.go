package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestEntryThatIsCommittedLateIsSealedInItsPlace holds a transaction open that has drawn an audit number. Meanwhile
// later entries are committed, and two processes seal and verify.
//
// When the transaction commits or is rolled back, every entry must be in the chain once, and Verify must report no
// inserted entry.
func TestEntryThatIsCommittedLateIsSealedInItsPlace(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		t.Run(map[bool]string{true: "committed", false: "rolled back"}[commits], func(t *testing.T) {
			t.Parallel()
			url := migrated.Copy(t)
			l := &lateAudit{T: t, stores: []*postgres.Store{openStore(t, url), openStore(t, url)}}
			l.note()
			l.seal()
			late, err := l.stores[0].Pool().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = late.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := late.Exec(t.Context(), "insert into sluice.audit (actor, object, name, event) values ('late', 'queue', 'q', 'change')"); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				l.note()
				l.seal()
			}
			if upto := l.seal(); upto > 1 {
				t.Errorf("entries up to %d were sealed, and one before them is not committed yet", upto)
			}
			l.end(late, commits)
			entries := int64(4)
			if commits {
				entries++
			}
			var report audit.Report
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && report.Entries < entries; time.Sleep(10 * time.Millisecond) {
				l.seal()
				report = l.verify()
			}
			if report.Entries != entries || report.Unsealed != 0 {
				t.Errorf("%d entries are in the chain and %d are not, want %d and none", report.Entries, report.Unsealed, entries)
			}
		})
	}
}

// lateAudit is an audit that two processes seal.
type lateAudit struct {
	*testing.T
	stores []*postgres.Store
}

func (l *lateAudit) note() {
	l.Helper()
	if err := l.stores[1].AppendAudit(l.Context(), []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "q", Event: audit.EventBatch, Actor: "test"}}); err != nil {
		l.Fatal(err)
	}
}

// seal makes both processes seal the settled entries, and verifies the chain. It returns the last sealed number.
func (l *lateAudit) seal() (upto int64) {
	l.Helper()
	for _, store := range l.stores {
		sealed, err := audit.SealSettled(l.Context(), store, audit.SealOptions{})
		if err != nil {
			l.Fatal(err)
		}
		upto = max(upto, sealed.Last.Upto)
	}
	l.verify()
	return upto
}

func (l *lateAudit) verify() audit.Report {
	l.Helper()
	report, err := audit.Verify(l.Context(), l.stores[0], audit.VerifyOptions{})
	if err != nil || report.Fault != nil {
		l.Fatalf("verify: %+v, %v", report.Fault, err)
	}
	return report
}

func (l *lateAudit) end(tx pgx.Tx, commits bool) {
	l.Helper()
	end := tx.Rollback
	if commits {
		end = tx.Commit
	}
	if err := end(l.Context()); err != nil {
		l.Fatal(err)
	}
}
