package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// examineStore checks what is particular to a kind of store.
func examineStore(ctx context.Context, store sluice.Store) ([]finding, error) {
	switch s := store.(type) {
	case *postgres.Store:
		return examinePostgres(ctx, s)
	case *sqlite.Store:
		return examineSQLite(ctx, s)
	}
	return nil, nil
}

// maxClockDifference is from when on a process's clock is worth a word. Sluice goes by the store's
// clock, so that only what people read is off.
const maxClockDifference = 2 * time.Second

func examinePostgres(ctx context.Context, s *postgres.Store) ([]finding, error) {
	var version string
	var theirs time.Time
	var oldest *float64
	before := time.Now()
	err := s.Pool().QueryRow(ctx, `select current_setting('server_version'), clock_timestamp(),
		(select extract(epoch from max(clock_timestamp() - xact_start)) from pg_stat_activity
		 where datname = current_database() and pid <> pg_backend_pid())::float8`).Scan(&version, &theirs, &oldest)
	if err != nil {
		return nil, fmt.Errorf("look at the server: %w", err)
	}
	ours := before.Add(time.Since(before) / 2)
	out := []finding{well("server", "PostgreSQL %s", version)}
	if off := ours.Sub(theirs).Abs(); off > maxClockDifference {
		out = append(out, finding{
			Check: "clock", What: fmt.Sprintf("this machine's clock is %s off the server's", short(off)),
			Why: "jobs go by the server's clock; what this machine logs and shows does not", Mend: "set up time synchronisation (NTP) on this machine",
		})
	} else {
		out = append(out, well("clock", "within %s of the server's", short(maxClockDifference)))
	}
	if oldest != nil && *oldest > 3600 {
		out = append(out, finding{
			Check: "vacuum", What: fmt.Sprintf("a transaction has been open for %s", short(time.Duration(*oldest*float64(time.Second)))),
			Why:  "while it is open, no dead row of any table can be removed",
			Mend: "find it with: select pid, usename, state, query from pg_stat_activity where xact_start is not null order by xact_start limit 1",
		})
	} else {
		out = append(out, well("vacuum", "no transaction is older than an hour"))
	}
	return out, nil
}

func examineSQLite(ctx context.Context, s *sqlite.Store) ([]finding, error) {
	var version, mode string
	if err := s.DB().QueryRowContext(ctx, "select sqlite_version()").Scan(&version); err != nil {
		return nil, fmt.Errorf("look at the file: %w", err)
	}
	if err := s.DB().QueryRowContext(ctx, "pragma journal_mode").Scan(&mode); err != nil {
		return nil, fmt.Errorf("look at the file: %w", err)
	}
	out := []finding{well("server", "SQLite %s", version)}
	if mode != "wal" {
		out = append(out, finding{
			Check: "journal", What: "the journal mode is " + mode, Why: "readers and the writer keep each other waiting",
			Mend: "sqlite3 FILE 'pragma journal_mode = wal'",
		})
	} else {
		out = append(out, well("journal", "write-ahead log, every commit on the disk before it is acknowledged"))
	}
	return out, nil
}
