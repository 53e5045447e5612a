package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/migration"
)

// pg is a PostgreSQL database, through one connection.
type pg struct {
	conn *pgx.Conn
}

func openPostgres(ctx context.Context, dsn string) (*pg, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{"jit": "off", "statement_timeout": fmt.Sprint(callTimeout.Milliseconds()), "lock_timeout": "5000"}
	maps.Copy(config.RuntimeParams, settings)
	config.RuntimeParams["application_name"] = "sluice move"
	config.ConnectTimeout = 10 * time.Second
	// Statements differ from table to table, and a pooler may be in between.
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	conn, err := pgx.ConnectConfig(ctx, config)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "08P01" && strings.Contains(server.Message, "startup parameter") { // a pooler that accepts none
		for name := range settings {
			delete(config.RuntimeParams, name)
		}
		conn, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	return &pg{conn: conn}, nil
}

func (s *pg) name() string {
	c := s.conn.Config()
	return fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database)
}

func (s *pg) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

func (s *pg) layout(t *table) layout { return t.postgres }

func (s *pg) columns(ctx context.Context) (map[string][]string, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, `select 'sluice.' || c.relname, a.attname::text from pg_class c
		join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
		where n.nspname = 'sluice' and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped`)
	if err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	there := make(map[string][]string)
	var name, column string
	_, err = pgx.ForEachRow(rows, []any{&name, &column}, func() error {
		there[name] = append(there[name], column)
		return nil
	})
	return there, err
}

// one runs a query for one value.
func (s *pg) one(ctx context.Context, into any, text string, args ...any) error {
	ctx, cancel := briefly(ctx)
	defer cancel()
	return s.conn.QueryRow(ctx, text, args...).Scan(into)
}

func (s *pg) step(ctx context.Context) (step int, err error) {
	err = s.one(ctx, &step, "select coalesce(max(version), 0) from sluice.migration where version <> $1", migration.Moving)
	return step, err
}

func (s *pg) count(ctx context.Context, t *table) (n int64, err error) {
	err = s.one(ctx, &n, counting(s, t))
	return n, err
}

func (s *pg) any(ctx context.Context, t *table) (found bool, err error) {
	err = s.one(ctx, &found, "select exists (select from "+tableName(s, t.postgres)+")")
	return found, err
}

func (s *pg) last(ctx context.Context) (place int64, err error) {
	err = s.one(ctx, &place, "select coalesce(max(order_place), 0) from sluice.job")
	return place, err
}

func pgExpression(c column) string {
	name := "t." + quote(c.name)
	switch {
	case c.reads != "":
		return c.reads
	case c.kind == kindJSON:
		return name + "::text"
	case c.kind == kindIDs:
		return "to_json(" + name + ")::text"
	}
	return name
}

func (s *pg) read(ctx context.Context, t *table, after []any) ([]row, error) {
	ctx, cancel := briefly(ctx)
	defer cancel()
	for i, part := range after {
		if raw, isBytes := part.([]byte); isBytes { // read from the stored state; here an id
			after[i] = [16]byte(raw)
		}
	}
	parameter := func(i int) string { return fmt.Sprintf("$%d", i+1) }
	rows, err := s.conn.Query(ctx, selecting(s, t, pgExpression, len(after) > 0, parameter), after...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []row
	keys := len(t.postgres.key)
	for bytes := 0; bytes < batchBytes && rows.Next(); {
		cells, err := rows.Values()
		if err != nil {
			return nil, err
		}
		r := row{key: cells[:keys], values: cells[keys:]}
		for i, c := range t.columns {
			if r.values[i], err = fromPostgres(c, r.values[i]); err != nil {
				return nil, fmt.Errorf("row %v: %w", r.key, err)
			}
		}
		out = append(out, r)
		bytes += size(r.values)
	}
	rows.Close()
	return out, rows.Err()
}

// in runs a transaction.
func (s *pg) in(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := briefly(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return do(ctx, tx) })
}

func pgExec(ctx context.Context, tx pgx.Tx, texts ...string) error {
	for _, text := range texts {
		if _, err := tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (s *pg) begin(ctx context.Context, st state) error {
	return s.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := pgExec(ctx, tx, "create table if not exists sluice.move (one integer primary key check (one = 1), state text not null)",
			fmt.Sprintf(`insert into sluice.migration (version, name, checksum, works_from)
				values (%d, 'a move is under way', '', %d) on conflict do nothing`, migration.Moving, migration.Moving))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into sluice.move values (1, $1) on conflict (one) do nothing", st.text()); err != nil {
			return err
		}
		kept, err := pgStateIn(ctx, tx)
		return cmp.Or(err, kept.of(st.ID))
	})
}

// pgState stores how far a move has come. If another move has the target by now, pgState fails.
func pgState(ctx context.Context, tx pgx.Tx, st state) error {
	done, err := tx.Exec(ctx, "update sluice.move set state = $1 where state::json ->> 'ID' = $2", st.text(), st.ID)
	if err == nil && done.RowsAffected() == 0 {
		err = (*state)(nil).of(st.ID)
	}
	return err
}

const pgHasState, pgReadState = "select to_regclass('sluice.move') is not null", "select state from sluice.move"

func (s *pg) state(ctx context.Context) (*state, error) {
	return kept[state](ctx, s, pgHasState, pgReadState)
}

// pgStateIn is state in a transaction.
func pgStateIn(ctx context.Context, tx pgx.Tx) (*state, error) {
	return kept[state](ctx, pgTx{tx}, pgHasState, pgReadState)
}

func (s *pg) write(ctx context.Context, t *table, rows []row, st state) error {
	places, names, made := writes(s, t)
	return s.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		at := 0
		var key any
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"sluice", t.postgres.name}, names, pgx.CopyFromFunc(func() ([]any, error) {
			if at == len(rows) {
				return nil, nil
			}
			r := rows[at]
			at, key = at+1, r.key
			cells := make([]any, 0, len(names))
			for _, i := range places {
				cell, err := toPostgres(t.columns[i], r.values[i])
				if err != nil {
					return nil, err
				}
				cells = append(cells, cell)
			}
			return append(cells, made...), nil
		}))
		if err != nil {
			return fmt.Errorf("up to row %v: %w", key, err)
		}
		if t.name == batchCounts {
			if err := noteDeaths(ctx, tx, rows); err != nil {
				return fmt.Errorf("note deaths: %w", err)
			}
		}
		return pgState(ctx, tx, st)
	})
}

// settle sets the sequences behind the copied rows, lets upkeep look at batches, and updates the planner's statistics.
func (s *pg) settle(ctx context.Context) error {
	err := s.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return pgExec(ctx, tx,
			"select setval('sluice.order_place', greatest((select coalesce(max(order_place), 0) from sluice.job), 1))",
			"select setval(pg_get_serial_sequence('sluice.audit', 'seq'), greatest((select coalesce(max(seq), 0) from sluice.audit), 1))",
			pgWakeBatches)
	})
	if err != nil {
		return fmt.Errorf("set the sequences, and let upkeep look at batches: %w", err)
	}
	ctx, cancel := briefly(ctx)
	defer cancel()
	for _, t := range tables() {
		if _, err := s.conn.Exec(ctx, "analyze "+tableName(s, t.postgres)); err != nil {
			return fmt.Errorf("analyze: %w", err)
		}
	}
	return nil
}

func (s *pg) seal(ctx context.Context) (*sealed, error) {
	return kept[sealed](ctx, s, "select exists (select from sluice.audit_seal)",
		`select json_build_object('No', no, 'Upto', upto, 'Hash', encode(hash, 'hex'), 'Notable', notable_keep_ms, 'Full', full_keep_ms)::text
		from sluice.audit_seal order by no desc limit 1`)
}

func (s *pg) end(ctx context.Context, id string, chain *audit.Addition) error {
	return s.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		kept, err := pgStateIn(ctx, tx)
		if err != nil || kept == nil {
			return err
		}
		if err := kept.of(id); err != nil {
			return err
		}
		var at any
		if chain != nil {
			at = chain.Seal.At
		}
		err = addChain(ctx, chain, at,
			"insert into sluice.audit_seal ("+sealColumns+") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
			"insert into sluice.audit (at, actor, object, name, event, reason, after) values ($1, $2, $3, $4, $5, $6, $7::text::jsonb)",
			func(ctx context.Context, text string, args ...any) error {
				_, err := tx.Exec(ctx, text, args...)
				return err
			})
		if err != nil {
			return err
		}
		return pgExec(ctx, tx, fmt.Sprintf("delete from sluice.migration where version = %d", migration.Moving), "drop table if exists sluice.move")
	})
}

// errHeld rolls back a transaction that found claimed jobs.
var errHeld = errors.New("jobs are claimed")
