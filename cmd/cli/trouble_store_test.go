package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// troublesOfStores are troubles of files, servers, roles and schemas.
func troublesOfStores() []trouble {
	return []trouble{
		{
			sees: noCommand, cause: "the address of the store is wrong", asks: "doctor", says: `connection refused`, mend: "--db (or SLUICE_DB)", alert: noStore, unready: "store", log: "connection refused",
			make: func(s *scene) sluice.ID {
				s.db, s.within = "postgres://ada@127.0.0.1:1/jobs", "200ms"
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the database does not exist", needs: "postgres", asks: "doctor", says: `database "nowhere" does not exist`, mend: "--db (or SLUICE_DB)", alert: noStore, unready: serveEnds, log: "does not exist",
			make: func(s *scene) sluice.ID {
				s.db = at(s, func(u *url.URL) { u.Path = "/nowhere" })
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the schema is too old", asks: "doctor", says: `✖ schema`, mend: "sluice migrate", unready: "schema",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.sql("update sluice_migration set version = 0") // now the schema looks like one of an older program
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the schema is too new", asks: "doctor", says: `✖ schema .*step 99.*newer than this program`, mend: "install the newer sluice", alert: noStore, unready: "store leaders schema", besides: "upkeep", log: "program too old for the schema",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.sql("insert into sluice_migration values (99, 'future', 'x', 99, 0)")
				s.until("the store refuses this program", func() bool {
					_, err := s.store.Now(s.Context())
					return errors.Is(err, sluice.ErrNewerSchema)
				})
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the role may not use the schema", needs: "postgres", asks: "doctor", says: `✖ grant +permission denied for schema sluice`, mend: "grant usage on schema sluice to ROLE", alert: noStore, unready: serveEnds, log: "permission denied for schema sluice",
			make: func(s *scene) sluice.ID {
				s.migrate()
				s.asRole("stranger", "login")
				return sluice.ID{}
			},
		},
		{
			sees: noCommand, cause: "the database takes no writes", needs: "postgres", asks: "doctor", says: `✖ server .*read-only`, mend: "default_transaction_read_only", unready: "leaders upkeep", log: "read-only transaction",
			make: func(s *scene) sluice.ID {
				s.migrate()
				parsed, err := url.Parse(s.db)
				s.ok(err)
				s.postgres("alter database " + strings.TrimPrefix(parsed.Path, "/") + " set default_transaction_read_only = on")
				s.open()
				s.upkeep(nil)
				return sluice.ID{}
			},
		},
		{
			sees: slow, cause: "a transaction stays open", needs: "clock", asks: "doctor", says: `✖ transaction +open for 20m.*idle in transaction`, mend: "select pg_terminate_backend(", alert: "old-transaction", besides: "clock",
			make: func(s *scene) sluice.ID {
				s.migrate()
				conn, err := pgx.Connect(s.Context(), s.db)
				s.ok(err)
				s.Cleanup(func() { _ = conn.Close(context.WithoutCancel(s.Context())) })
				_, err = conn.Exec(s.Context(), "begin isolation level repeatable read; select count(*) from sluice.job")
				s.ok(err)
				s.ok(s.server.SetClock(20 * time.Minute))
				s.open()
				s.tend(nil)
				return sluice.ID{}
			},
		},
		{
			sees: notStarted, cause: "a clock is off", needs: "clock", asks: "doctor", says: `✖ clock +this machine's clock is 2m off the server's`, mend: "timedatectl set-ntp true", alert: "clock",
			make: func(s *scene) sluice.ID {
				s.migrate()
				s.ok(s.server.SetClock(2 * time.Minute))
				s.open()
				s.tend(nil)
				return sluice.ID{}
			},
		},
	}
}

// serverWithClock starts a PostgreSQL server whose clock a test can set.
func serverWithClock(t *testing.T) *pgtest.Cluster {
	t.Helper()
	server, err := pgtest.Start(pgtest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// migrate makes the schema, and nothing else.
func (s *scene) migrate() {
	s.Helper()
	_, err := postgres.Migrate(s.Context(), s.db)
	s.ok(err)
}

// asRole makes a role with the given rights. All later connections log in as this role.
func (s *scene) asRole(name, rights string) {
	s.Helper()
	parsed, err := url.Parse(s.db)
	s.ok(err)
	role, owner := strings.TrimPrefix(parsed.Path, "/")+"_"+name, s.db
	s.postgres("create role " + role + " " + rights)
	s.Cleanup(func() { s.postgresAt(owner, "drop role "+role) })
	s.db = at(s, func(u *url.URL) { u.User = url.User(role) })
}

// sql runs a statement in the SQLite file on a connection of its own, since connections of an open store may not change
// the schema.
func (s *scene) sql(statement string) {
	s.Helper()
	file, err := sql.Open("sqlite", strings.TrimPrefix(s.db, "sqlite:"))
	s.ok(err)
	defer func() { _ = file.Close() }()
	_, err = file.ExecContext(s.Context(), "pragma busy_timeout = 60000; "+statement)
	s.ok(err)
}

// postgres runs a statement as the user in the scene's address: the owner of the database, until asRole replaces it.
func (s *scene) postgres(statement string) {
	s.Helper()
	s.postgresAt(s.db, statement)
}

func (s *scene) postgresAt(address, statement string) {
	s.Helper()
	ctx := context.WithoutCancel(s.Context())
	owner, err := pgx.Connect(ctx, address)
	s.ok(err)
	defer func() { _ = owner.Close(ctx) }()
	_, err = owner.Exec(ctx, statement)
	s.ok(err)
}

// at returns the address of the database after a change.
func at(s *scene, change func(*url.URL)) string {
	s.Helper()
	parsed, err := url.Parse(s.db)
	s.ok(err)
	change(parsed)
	return parsed.String()
}
