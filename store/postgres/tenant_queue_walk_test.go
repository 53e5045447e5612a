package postgres_test

import (
	"fmt"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// passedSQL stores jobs of 100 tenants, most of which are deleted soon.
const passedSQL = `
	insert into sluice.live (id, queue, tenant, priority, due_at, in_tenant_queue)
		select gen_random_uuid(), 'q', 't' || n % 100, 5, now() - interval '1 hour' + n * interval '1 millisecond', true
		from generate_series(1, 20000) n`

// backlogOfTenantsSQL stores 200 jobs of each tenant.
const backlogOfTenantsSQL = `
	with stored as (
		insert into sluice.job (id, queue, tenant, priority, payload)
		select gen_random_uuid(), 'q', 't' || n % 100, 5, '1' from generate_series(1, 20000) n
		returning id, tenant
	)
	insert into sluice.live (id, queue, tenant, priority, due_at, in_tenant_queue)
	select id, 'q', tenant, 5, now() - random() * interval '1 hour', true from stored`

// countBlocksSQL records how many blocks of the backlog each claim in turns reads. It counts from the tenant changes
// that the claim takes in to the turns that it stores. The server counts by transaction, and adds up only after the
// end.
const countBlocksSQL = `
	create table public.claim_blocks (begun bigint, ended bigint);
	create function backlog_blocks() returns bigint language sql volatile as $$
		select sum(pg_stat_get_xact_blocks_fetched(c.oid))::bigint
		from pg_class c left join pg_index i on i.indexrelid = c.oid
		where coalesce(i.indrelid, c.oid) in ('sluice.live'::regclass, 'sluice.tenant_queue'::regclass)
	$$;
	create function claim_begins() returns trigger language plpgsql as $$
	begin
		insert into public.claim_blocks (begun) values (public.backlog_blocks());
		return null;
	end $$;
	create function claim_ends() returns trigger language plpgsql as $$
	begin
		update public.claim_blocks set ended = public.backlog_blocks() where ended is null;
		return null;
	end $$;
	create trigger claim_begins after delete on sluice.tenant_change for each statement execute function claim_begins();
	create trigger claim_ends after update on sluice.flow for each statement execute function claim_ends()`

// TestClaimsWalkInOrderWhateverTheStatisticsSay uses statistics from a time when nearly no job waited. A vacuum had
// left the indexes as large as before. By these statistics, sorting the waiting jobs is cheapest.
func TestClaimsWalkInOrderWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, store *postgres.Store) (jobs int){
		"program": func(t *testing.T, store *postgres.Store) (jobs int) {
			for _, n := range claimed(t, store, 100) {
				jobs += n
			}
			return jobs
		},
		"function": func(t *testing.T, store *postgres.Store) (jobs int) {
			if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.claim(array['q'], 'h', 100)").Scan(&jobs); err != nil {
				t.Fatal(err)
			}
			return jobs
		},
	}
	for name, claim := range ways {
		for _, waited := range []int{3, 10, 30} {
			t.Run(fmt.Sprintf("%s, %d waited", name, waited), func(t *testing.T) {
				t.Parallel()
				store := openStore(t, migrated.Copy(t))
				settings := sluice.DefaultSettings()
				settings.Fair = true
				if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
					t.Fatal(err)
				}
				if blocks := blocksOfClaim(t, store, waited, claim); blocks > 6000 {
					t.Errorf("a claim of 100 jobs, one of each tenant, reads %d blocks of the backlog", blocks)
				}
			})
		}
	}
}

// blocksOfClaim returns how many blocks a claim of 100 jobs reads from a backlog of 20,000. The server's statistics
// come from a time when waited jobs were stored.
func blocksOfClaim(t *testing.T, store *postgres.Store, waited int, claim func(*testing.T, *postgres.Store) int) (blocks int64) {
	t.Helper()
	run(t, store, "alter table sluice.live set (autovacuum_enabled = off)")
	run(t, store, passedSQL)
	run(t, store, "delete from sluice.live where id not in (select id from sluice.live order by due_at desc limit $1)", waited)
	run(t, store, "vacuum analyze sluice.live")
	run(t, store, "delete from sluice.live")
	run(t, store, backlogOfTenantsSQL)
	batch(t, store, countBlocksSQL)
	tenants := make([]string, 100)
	for i := range tenants {
		tenants[i] = fmt.Sprintf("t%d", i)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, tenants...)
	if n := claim(t, store); n != 100 {
		t.Fatalf("claimed %d, want 100", n)
	}
	if err := store.Pool().QueryRow(t.Context(), "select max(ended - begun) from claim_blocks").Scan(&blocks); err != nil {
		t.Fatal(err)
	}
	return blocks
}

// batch runs statements in one transaction.
func batch(t *testing.T, store *postgres.Store, statements string) {
	t.Helper()
	conn, err := store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Conn().PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
