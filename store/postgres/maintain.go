package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
)

//go:embed sql/maintain_tables.sql
var maintainTablesSQL string

//go:embed sql/prune_overdue.sql
var pruneOverdueSQL string

var _ health.Maintainer = (*Store)(nil)

// maintainedTable is a table that vacuum could clean.
type maintainedTable struct {
	Name    string
	Dead    int64
	Live    int64
	Bytes   int64
	Allowed bool
}

// Maintain vacuums and analyzes the tables one after the other, those with the most dead rows first.
func (s *Store) Maintain(ctx context.Context, task health.Task, dryRun bool) (out health.Maintained, err error) {
	if task != health.TaskVacuum {
		return out, &sluice.InvalidError{Field: "task", Rule: string(task) + " must be vacuum or retention: PostgreSQL writes checkpoints of the whole server by itself, as checkpoint_timeout and max_wal_size say"}
	}
	before, err := s.maintained(ctx, 0)
	if err != nil {
		return out, err
	}
	if dryRun {
		for _, t := range before {
			out.Add(health.MaintainedPart{Name: t.Name, Rows: t.Dead})
			if !t.Allowed {
				out.Left = append(out.Left, t.refused())
			}
		}
		return out, nil
	}
	done, err := s.vacuum(ctx, before, &out)
	if err != nil || len(done) == 0 {
		return out, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.lookTimeout)
	defer stop()
	after, err := s.maintained(ctx, 0)
	if err != nil { // the tables are vacuumed all the same
		out.Left = append(out.Left, "how much that removed is not known: "+sluice.Brief(err.Error()))
		after = before
	}
	for _, now := range after {
		if was, is := done[now.Name]; is {
			out.Add(health.MaintainedPart{Name: now.Name, Rows: max(0, was.Dead-now.Dead), Bytes: max(0, was.Bytes-now.Bytes)})
		}
	}
	return out, nil
}

// refused says that this role may not vacuum the table.
func (t maintainedTable) refused() string {
	table := "sluice." + name(t.Name)
	return t.Name + " belongs to another role. As its owner: vacuum (analyze) " + table + ", or, from PostgreSQL 17 on: grant maintain on " + table + " to the role of this program"
}

// maintained lists the tables that have at least so many dead rows.
func (s *Store) maintained(ctx context.Context, dead int64) (tables []maintainedTable, err error) {
	err = s.call(ctx, "look at the tables", func(ctx context.Context, _ bool) (err error) {
		tables, err = rowsOf[maintainedTable](ctx, s.pool, maintainTablesSQL, dead)
		return err
	})
	return tables, err
}

// forVacuum runs do with a connection that waits 1 s for a lock, and whose statements may take any time.
func (s *Store) forVacuum(ctx context.Context, do func(conn *pgxpool.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("vacuum: %w", typed(err))
	}
	defer conn.Release()
	if s.pooled { // a pooler would keep the settings for others, and gets none of ours
		return do(conn)
	}
	for _, set := range []string{"set statement_timeout = 0", "set lock_timeout = '1s'"} {
		if err := exec(ctx, conn, set); err != nil {
			return fmt.Errorf("vacuum: %w", typed(err))
		}
	}
	defer func() {
		for _, reset := range []string{"reset statement_timeout", "reset lock_timeout"} {
			_ = exec(context.WithoutCancel(ctx), conn, reset) // a closed connection has no settings
		}
	}()
	return do(conn)
}

// vacuum vacuums tables on one connection until ctx ends, and returns those that it has done.
func (s *Store) vacuum(ctx context.Context, tables []maintainedTable, out *health.Maintained) (done map[string]maintainedTable, err error) {
	err = s.forVacuum(ctx, func(conn *pgxpool.Conn) (err error) {
		done, err = vacuumAll(ctx, conn, tables, out)
		return err
	})
	return done, err
}

func vacuumAll(ctx context.Context, conn *pgxpool.Conn, tables []maintainedTable, out *health.Maintained) (map[string]maintainedTable, error) {
	done := make(map[string]maintainedTable)
	var late []string
	for _, t := range tables {
		if !t.Allowed {
			out.Left = append(out.Left, t.refused())
			continue
		}
		_, err := conn.Exec(ctx, "vacuum (analyze) sluice."+name(t.Name), pgx.QueryExecModeSimpleProtocol)
		switch {
		case err == nil:
			done[t.Name] = t
		case ctx.Err() != nil:
			late = append(late, t.Name)
		case conn.Conn().IsClosed():
			return nil, fmt.Errorf("vacuum %s: %w", t.Name, typed(err))
		default:
			out.Left = append(out.Left, t.Name+": "+sluice.Brief(err.Error()))
		}
	}
	if len(late) > 0 {
		out.Left = append(out.Left, "the time was over before these were vacuumed: "+strings.Join(late, ", ")+". Beside the server, run `sluice upkeep now vacuum --timeout 10m`")
	}
	return done, nil
}

// Overdue counts the jobs that Prune would delete now.
func (s *Store) Overdue(ctx context.Context, limit int) (out []health.Overdue, err error) {
	defaults := sluice.DefaultSettings()
	var at health.Overdue
	for limit > 0 {
		var found []health.Overdue
		err := s.call(ctx, "count jobs to prune", func(ctx context.Context, _ bool) (err error) {
			found, err = rowsOf[health.Overdue](ctx, s.pool, pruneOverdueSQL, at.Queue, string(at.Outcome), limit,
				defaults.KeepCompleted.Milliseconds(), defaults.KeepCancelled.Milliseconds(), defaults.KeepDead.Milliseconds())
			return err
		})
		if err != nil || len(found) == 0 {
			return out, err
		}
		if at = found[0]; at.Jobs > 0 {
			out = append(out, at)
		}
		limit -= at.Jobs
	}
	return out, nil
}
