package move

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestChainGoesOnFromTheHeadOfTheSource moves a sealed audit to each kind of store and back. The retention of entries
// stays, and each new chain names the head of the chain in the store before.
func TestChainGoesOnFromTheHeadOfTheSource(t *testing.T) {
	t.Parallel()
	ways := []string{newFile(t), pgtest.NewDatabase(t), pgtest.NewDatabase(t), newFile(t)}
	store := open(t, ways[0])
	chain, err := audit.Of(store)
	if err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Keep(t.Context(), chain, map[audit.Level]time.Duration{audit.Full: 90 * 24 * time.Hour, audit.Notable: 0}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	head := sealAll(t, chain)
	for i := 1; i < len(ways); i++ {
		_ = store.Close()
		mustMove(t, ways[i-1], ways[i])
		store = open(t, ways[i])
		if chain, err = audit.Of(store); err != nil {
			t.Fatal(err)
		}
		first, err := chain.LastAuditSeal(t.Context())
		if err != nil || first.No != 1 || first.Keeps(audit.Full) != 90*24*time.Hour || first.Keeps(audit.Notable) != 0 {
			t.Errorf("in %s the first seal is %+v: %v", ways[i], first, err)
		}
		told, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectAudit, Name: "chain", Limit: 1})
		if err != nil || len(told) != 1 {
			t.Fatalf("in %s the audit tells %v of the chain: %v", ways[i], told, err)
		}
		var after struct {
			From, Head string
			Upto       int64
		}
		if err := json.Unmarshal(told[0].After, &after); err != nil || after.Head != head.Head().String() || after.Upto != head.Upto || after.From == "" {
			t.Errorf("in %s the chain goes on from %s, want %s up to %d: %v", ways[i], told[0].After, head.Head(), head.Upto, err)
		}
		head = sealAll(t, chain)
	}
}

// sealAll seals and verifies all entries, and returns the last seal.
func sealAll(t *testing.T, chain audit.Store) audit.Seal {
	t.Helper()
	for {
		if _, err := audit.SealSettled(t.Context(), chain, audit.SealOptions{}); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Verify(t.Context(), chain, audit.VerifyOptions{})
		if err != nil || report.Fault != nil {
			t.Fatalf("verify: %+v, %v", report.Fault, err)
		}
		if report.Unsealed == 0 {
			return report.Last
		}
	}
}
