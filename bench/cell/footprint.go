package cell

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// footprint counts rows, bytes with indexes, and bytes of WAL written so far.
type footprint struct{ rows, bytes, wal int64 }

func (f footprint) minus(before footprint) footprint {
	return footprint{f.rows - before.rows, f.bytes - before.bytes, f.wal - before.wal}
}

func (f footprint) plus(more footprint) footprint {
	return footprint{f.rows + more.rows, f.bytes + more.bytes, f.wal + more.wal}
}

// engineFootprint returns the footprint of Temporal's two databases.
func engineFootprint(ctx context.Context, task Task) (footprint, error) {
	main, err := footprintOf(ctx, task.Temporal.Place)
	if err != nil {
		return footprint{}, err
	}
	visibility, err := footprintOf(ctx, beside(task.Temporal.Place, "_visibility"))
	visibility.wal = 0 // a cluster has one log for all databases
	return main.plus(visibility), err
}

// beside returns the URL of the database named like place's database plus suffix.
func beside(place, suffix string) string {
	at, query, _ := strings.Cut(withoutPool(place), "?")
	return at + suffix + "?" + query
}

// footprintOf counts the rows and bytes of all tables, and reads the cluster's WAL position.
func footprintOf(ctx context.Context, place string) (out footprint, err error) {
	db, err := sql.Open("pgx", withoutPool(place))
	if err != nil {
		return out, err
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(ctx, `
		select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
		       coalesce(sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %s', c.oid::regclass), false, true, '')))[1]::text::bigint), 0)::bigint,
		       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`).Scan(&out.bytes, &out.rows, &out.wal)
	if err != nil {
		err = fmt.Errorf("measure the databases: %w", err)
	}
	return out, err
}
