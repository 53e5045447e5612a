package cell

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
)

// findTenants is the number of tenants in the history of a Find cell.
const findTenants = 1000

// findRows insert a history. Each job has a key and a tenant; 1 in 10 has a label.
var findRows = map[string][]string{
	Postgres: {
		`insert into sluice.job (id, queue, tenant, key, labels, priority, payload)
			select lpad(to_hex(i), 32, '0')::uuid, 'parcels', 'tenant-' || i % 1000, 'order-' || i,
			       case when i % 10 = 0 then jsonb_build_object('order', i::text) end, 5, '{}' from generate_series(1, $1::bigint) i`,
		`insert into sluice.done (id, generation, queue, tenant, outcome, due_at, finished_at, attempts, releases, recoveries)
			select id, 1, queue, tenant, 'completed', now(), now(), 0, 0, 0 from sluice.job where $1::bigint > 0`,
	},
	SQLite: {
		`with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1)
			insert into sluice_job (seq, id, queue, tenant, key, labels, priority, payload, created_at)
			select i, unhex(printf('%032x', i)), 'parcels', 'tenant-' || (i % 1000), 'order-' || i,
			       iif(i % 10 = 0, json_object('order', cast(i as text)), null), 5, '{}', 0 from n`,
		`insert into sluice_done (seq, generation, queue, tenant, outcome, due_at, finished_at, attempts, releases, recoveries)
			select seq, 1, queue, tenant, 'completed', 0, unixepoch() * 1000000, 0, 0, 0 from sluice_job where ?1 > 0`,
	},
}

// measureFind times searches for finished jobs in a history.
func measureFind(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	if err := makeHistory(ctx, task); err != nil {
		return nil, fmt.Errorf("make rows: %w", err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	result := make(Result)
	for figure, filter := range map[Figure]func(n int) sluice.JobFilter{
		KeyP99:    func(n int) sluice.JobFilter { return sluice.JobFilter{Key: fmt.Sprintf("order-%d", n)} },
		TenantP99: func(n int) sluice.JobFilter { return sluice.JobFilter{Tenant: fmt.Sprintf("tenant-%d", n%findTenants)} },
		LabelP99: func(n int) sluice.JobFilter {
			return sluice.JobFilter{Labels: map[string]string{"order": fmt.Sprint(n)}}
		},
	} {
		took := make([]float64, 0, task.Jobs)
		for i := range task.Jobs {
			begun := time.Now()
			page, err := client.Jobs(ctx, filter(1+i*7919%task.History)) // a prime stride reaches every part of the history
			took = append(took, millis(time.Since(begun)))
			if err != nil || figure != LabelP99 && len(page.Jobs) == 0 {
				return nil, fmt.Errorf("%s: %d jobs found: %w", figure, len(page.Jobs), err)
			}
		}
		result[figure] = stat.Percentile(took, 99)
	}
	return result, nil
}

// dropFinding drops the indexes of jobs that only searches use, if the task says so.
func dropFinding(ctx context.Context, task Task) error {
	if !task.NoFinding {
		return nil
	}
	db, err := openDatabase(task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, index := range map[string][]string{
		Postgres: {"sluice.job_by_key", "sluice.job_by_tenant"}, SQLite: {"sluice_job_by_key", "sluice_job_by_tenant"},
	}[task.Store] {
		if _, err := db.ExecContext(ctx, "drop index "+index); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the bytes of a store.
func sizeOf(ctx context.Context, task Task) (bytes float64, err error) {
	db, err := openDatabase(task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	query := "select pg_database_size(current_database())"
	if task.Store == SQLite {
		query = "select page_count * page_size from pragma_page_count, pragma_page_size"
	}
	err = db.QueryRowContext(ctx, query).Scan(&bytes)
	return bytes, err
}

func makeHistory(ctx context.Context, task Task) error {
	db, err := openDatabase(task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, text := range findRows[task.Store] {
		if _, err := db.ExecContext(ctx, text, task.History); err != nil {
			return err
		}
	}
	return nil
}
