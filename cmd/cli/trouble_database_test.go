package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/smalldisk"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// troublesOfDatabases are troubles that somebody caused in a SQLite file or in a PostgreSQL server.
func troublesOfDatabases() []trouble {
	return []trouble{
		{
			sees: noCommand, cause: "the file is no database", asks: "doctor", says: `file is not a database`, mend: "name another file with --db", alert: noStore, unready: serveEnds, log: "file is not a database",
			make: func(s *scene) sluice.ID {
				s.ok(os.WriteFile(strings.TrimPrefix(s.db, "sqlite:"), []byte(strings.Repeat("a list of jobs\n", 300)), 0o600))
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the folder of the file is missing", asks: "doctor", says: `there is no file .*nowhere/jobs.db`, mend: "or add --migrate", alert: noStore, unready: serveEnds, log: "there is no file",
			make: func(s *scene) sluice.ID {
				s.db = "sqlite:" + filepath.Join(s.TempDir(), "nowhere", "jobs.db")
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the disk is full", asks: "doctor", says: `✖ disk +the disk of the file has .* left`, mend: "sluice settings set QUEUE keep_completed=1d", unready: "leaders", log: "disk is full", besides: "unserved upkeep",
			make: func(s *scene) sluice.ID {
				disk := smalldisk.New(s, "4m")
				s.db = "sqlite:" + filepath.Join(disk, "jobs.db")
				s.open()
				s.tend(nil)
				s.add("mail", 1, sluice.EnqueueOptions{})
				smalldisk.Fill(s, disk)
				_, err := s.client.Enqueue(s.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`"` + strings.Repeat("x", 500_000) + `"`)})
				if !errors.Is(err, sluice.ErrUnavailable) || !strings.Contains(err.Error(), "disk is full") {
					s.Errorf("an enqueue says %v", err)
				}
				s.loseLead()
				return sluice.ID{}
			},
		},
		{
			sees: slow, cause: "somebody dropped an index", asks: "doctor", says: `✖ index +the index sluice_live_claim is missing`, mend: "CREATE INDEX sluice_live_claim",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.sql("drop index sluice_live_claim")
				return sluice.ID{}
			},
		},
		{
			sees: slow, cause: "another program keeps the write lock", asks: "doctor", says: `✖ lock +the write lock was not to be had in .*; it was held by pid .*\(cli.test\)`, mend: "let that program commit or roll back, or end it: kill ", unready: "leaders", besides: "upkeep", log: "database is locked",
			make: func(s *scene) sluice.ID {
				s.openWithin(2 * time.Second) // shorter than the lead of upkeep lasts
				s.tend(nil)
				tx, err := s.store.(*sqlite.Store).DB().BeginTx(s.Context(), nil) // begins immediate, as all transactions of the store do
				s.ok(err)
				s.Cleanup(func() { _ = tx.Rollback() })
				s.loseLead()
				return sluice.ID{}
			},
		},
		{
			sees: failing, cause: "a trigger of somebody else swallows rows", asks: "doctor", says: `✖ foreign +the trigger swallow on sluice_audit`, mend: "drop trigger",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.sql("create trigger swallow before insert on sluice_audit begin select raise(ignore); end")
				return sluice.ID{}
			},
		},
		{
			sees: failing, cause: "a trigger of the schema is switched off", needs: "postgres", asks: "doctor", says: `✖ trigger .*audit_stays`, mend: "alter table sluice.\"audit\" enable trigger \"audit_stays\"",
			make: func(s *scene) sluice.ID {
				s.migrate()
				s.open()
				s.tend(nil)
				s.postgres("alter table sluice.audit disable trigger audit_stays")
				return sluice.ID{}
			},
		},
		{
			sees: slow, cause: "a table is never vacuumed", needs: "postgres", asks: "doctor", says: `✖ autovacuum .*for the table live`, mend: `alter table sluice."live" reset`,
			make: func(s *scene) sluice.ID {
				s.migrate()
				s.open()
				s.tend(nil)
				s.postgres("alter table sluice.live set (autovacuum_enabled = off)")
				return sluice.ID{}
			},
		},
		{
			sees: slow, cause: "a pooler is between, in transaction mode", needs: "postgres", asks: "doctor", says: `• notify +off: .* a pooler in transaction mode`, mend: "give workers a URL that goes to PostgreSQL itself",
			make: func(s *scene) sluice.ID {
				s.migrate()
				_, s.db = pgtest.NewPooler(s, s.db, pgtest.PoolerOptions{})
				s.open()
				s.tend(nil)
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the pooler is away", needs: "postgres", asks: "doctor", says: `connection refused`, mend: "--db (or SLUICE_DB)", alert: noStore, unready: "store", log: "connection refused",
			make: func(s *scene) sluice.ID {
				s.migrate()
				var pooler *pgtest.Pooler
				pooler, s.db = pgtest.NewPooler(s, s.db, pgtest.PoolerOptions{})
				pooler.Kill()
				s.within = "500ms"
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the role may open no more connections", needs: "postgres", asks: "doctor", says: `too many connections for role`, mend: "alter role ROLE connection limit N", alert: noStore, unready: "store", log: "too many connections for role",
			make: func(s *scene) sluice.ID {
				s.asRole("narrow", "login connection limit 0")
				s.within = "2s"
				return sluice.ID{}
			},
		},
	}
}

// loseLead waits until no process leads upkeep, because none can renew its lead in the locked store.
func (s *scene) loseLead() {
	s.Helper()
	s.until("nobody leads upkeep", func() bool {
		leads, err := presence.Given(s.store).Leaders(s.Context())
		s.ok(err)
		return len(leads) == 1 && !leads[0].Held
	})
}
