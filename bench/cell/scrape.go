package cell

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/observe"
)

// scrapeRows insert the rows of a Scrape cell. Half of the waiting jobs are due, 1,000 are in flight for 100 tenants,
// and 1 in 100 finished jobs is dead.
var scrapeRows = map[string]struct{ live, flight, done string }{
	Postgres: {
		live: `insert into sluice.live (id, queue, tenant, priority, due_at)
			select lpad(to_hex(i), 32, '0')::uuid, $1, 'tenant-' || i % 1000, 1 + i % 10, now() + interval '1 ms' * (i - $2 / 2)
			from generate_series(1, $2) i`,
		flight: `update sluice.live set state = 'claimed', claimed_at = now(), lease_until = now() + interval '1 day', token = id, holder = 'bench',
			tenant = 'tenant-' || ('x' || right(id::text, 2))::bit(8)::int % 100
			where queue = $1 and id <= lpad(to_hex(1000), 32, '0')::uuid`,
		done: `insert into sluice.done (id, generation, queue, outcome, due_at, claimed_at, finished_at, attempts, releases, recoveries)
			select lpad(to_hex($2 + i), 32, '0')::uuid, 1, $1, case when i % 100 = 0 then 'dead' else 'completed' end, now(), now(), now(), 0, 0, 0
			from generate_series(1, $2) i`,
	},
	SQLite: {
		live: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?2)
			insert into sluice_live (seq, queue, tenant, priority, due_at)
			select i, ?1, 'tenant-' || (i % 1000), 1 + i % 10, unixepoch() * 1000000 + (i - ?2 / 2) * 1000 from n`,
		flight: `update sluice_live set state = 'claimed', claimed_at = unixepoch() * 1000000, lease_until = unixepoch() * 1000000 + 86400000000,
			token = randomblob(16), holder = 'bench', tenant = 'tenant-' || (seq % 100) where queue = ?1 and seq <= 1000`,
		done: `with recursive n (i) as (select 1 union all select i + 1 from n where i < ?2)
			insert into sluice_done (seq, generation, queue, outcome, due_at, claimed_at, finished_at, attempts, releases, recoveries)
			select ?2 + i, 1, ?1, iif(i % 100 = 0, 'dead', 'completed'), unixepoch() * 1000000, unixepoch() * 1000000, unixepoch() * 1000000, 0, 0, 0 from n`,
	},
}

// scrapeReads is the number of timed reads of the gauges.
const scrapeReads = 20

// measureScrape times scrapes of a store, and the reads of its gauges.
func measureScrape(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	settings := sluice.DefaultSettings()
	settings.Rate, settings.Concurrency = sluice.Rate{Jobs: 5000, Per: time.Second}, 5000
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	if err := fillBig(ctx, store, task); err != nil {
		return nil, err
	}
	return timeScrapes(ctx, store, task.Jobs)
}

func timeScrapes(ctx context.Context, store sluice.Store, n int) (Result, error) {
	registry := prometheus.NewRegistry()
	var failed error
	options := metric.Options{Registerer: registry, Failed: func(source string, err error) { failed = fmt.Errorf("%s: %w", source, err) }}
	observer, err := metric.New(options)
	if err != nil {
		return nil, err
	}
	gauges, err := metric.NewGauges(observe.Store(store, observer), options)
	if err != nil {
		return nil, err
	}
	var reads, scrapes []float64
	for range scrapeReads {
		begun := time.Now()
		gauges.Read(ctx)
		reads = append(reads, millis(time.Since(begun)))
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	for range n {
		begun := time.Now()
		answer, err := http.Get(server.URL)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return nil, err
		}
		scrapes = append(scrapes, millis(time.Since(begun)))
	}
	result := percentiles(scrapes)
	result[ReadTime] = stat.Median(reads)
	return result, failed
}

// fillBig makes the jobs of a big store, and counts those that wait.
func fillBig(ctx context.Context, store sluice.Store, task Task) error {
	if err := fillBySQL(ctx, task); err != nil {
		return fmt.Errorf("make rows: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return err
	}
	_, err := forecast.Recount(ctx, store)
	return err
}

// fillBySQL inserts the rows of a Scrape cell.
func fillBySQL(ctx context.Context, task Task) error {
	db, err := openDatabase(task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	rows := scrapeRows[task.Store]
	for _, part := range []struct {
		statement string
		arguments []any
	}{{rows.live, []any{parcels.Name(), task.Due}}, {rows.flight, []any{parcels.Name()}}, {rows.done, []any{parcels.Name(), task.History}}} {
		if _, err := db.ExecContext(ctx, part.statement, part.arguments...); err != nil {
			return err
		}
	}
	return nil
}
