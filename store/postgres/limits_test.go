package postgres_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// TestATierOfManyTenantsIsDeletedInParts counts the tenants that one transaction has changed.
func TestATierOfManyTenantsIsDeletedInParts(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	act := sluice.Act{By: "test", ID: sluice.NewID()}
	if _, err := tenancy.AddTier(t.Context(), store, "FREE", sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().Exec(t.Context(), "insert into sluice.tenant (name, tier) select 't-' || n, case when n % 5 = 0 then 'PRO' else 'FREE' end from generate_series(1, 7000) n"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and again, after a lost answer
		if err := tenancy.DeleteTier(t.Context(), store, "FREE", act); err != nil {
			t.Fatal(err)
		}
	}
	var most, left, others, told int
	err := store.Pool().QueryRow(t.Context(), `
		select max(jobs), sum(free), sum(pro), (select count(*) from sluice.audit where act_id = $1)
		from (select count(*) filter (where tier = '') as jobs, count(*) filter (where tier = 'FREE') as free, count(*) filter (where tier = 'PRO') as pro
		      from sluice.tenant group by xmin::text) x`, [16]byte(act.ID)).Scan(&most, &left, &others, &told)
	if err != nil || most > 2000 || left > 0 || others != 1400 || told != 5601 {
		t.Errorf("one transaction changed %d tenants; %d are left, %d are in the other tier, the audit has %d entries; %v", most, left, others, told, err)
	}
	if err := tenancy.DeleteTier(t.Context(), store, "FREE", sluice.Act{By: "test"}); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown tier: %v", err)
	}
}
