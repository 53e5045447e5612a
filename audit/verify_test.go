package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/memory"
)

// counted is a chain that counts the reads of entries, and does something after the first.
type counted struct {
	audit.Store
	reads int
	then  func()
}

func (c *counted) AuditDigests(ctx context.Context, after, upto int64, limit int) ([]audit.Digest, error) {
	found, err := c.Store.AuditDigests(ctx, after, upto, limit)
	if c.reads++; c.reads == 1 && c.then != nil {
		c.then()
	}
	return found, err
}

// sealed makes a chain of short seals.
func sealed(t *testing.T, seals, entries int) *counted {
	t.Helper()
	store := memory.New(memory.Options{})
	chain, err := audit.Of(store)
	if err != nil {
		t.Fatal(err)
	}
	for range seals {
		some := make([]sluice.AuditEntry, entries)
		for i := range some {
			some[i] = sluice.AuditEntry{Object: audit.ObjectQueue, Name: "mail", Event: audit.EventChange, Actor: "ada"}
		}
		if err := store.AppendAudit(t.Context(), some); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.SealSettled(t.Context(), chain, audit.SealOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return &counted{Store: chain}
}

// TestVerifyReadsManyShortSealsAtOnce counts the reads of Verify. A calm store makes half a million short seals a year:
// with a read for each seal, Verify would send as many HTTP requests.
func TestVerifyReadsManyShortSealsAtOnce(t *testing.T) {
	t.Parallel()
	chain := sealed(t, 500, 2)
	report, err := audit.Verify(t.Context(), chain, audit.VerifyOptions{})
	if err != nil || report.Fault != nil || report.Entries != 1000 || report.Seals != 500 {
		t.Errorf("verified %+v, %v, want 1,000 entries in 500 seals and no fault", report, err)
	}
	if chain.reads > 4 {
		t.Errorf("%d reads of entries, want one for 200 seals, and one for those that wait for a seal", chain.reads)
	}
}

// TestVerifyKnowsWhatRetentionDeletesMeanwhile deletes all sealed entries while Verify has read a part of them ahead.
func TestVerifyKnowsWhatRetentionDeletesMeanwhile(t *testing.T) {
	t.Parallel()
	chain := sealed(t, 200, 60)
	chain.then = func() {
		if _, err := audit.Keep(t.Context(), chain.Store, map[audit.Level]time.Duration{audit.Notable: time.Millisecond}, sluice.Act{By: "ada"}); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Millisecond) // longer than the retention of 1 ms
		if pruned, err := audit.Prune(t.Context(), chain.Store, "upkeep"); err != nil || pruned.Entries[audit.Notable] < 12_000 {
			t.Errorf("pruned %+v, %v, want at least 12,000 entries", pruned, err)
		}
	}
	report, err := audit.Verify(t.Context(), chain, audit.VerifyOptions{})
	if err != nil || report.Fault != nil || report.Gone[audit.Notable] == 0 || report.Entries < 10_000-60 {
		t.Errorf("verified %+v, %v, want deleted entries and no fault", report, err)
	}
}
