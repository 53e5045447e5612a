package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestDocumentedRoleOnlyAddsToTheAudit creates the role as docs/operate.md says. The role must be able to do what
// programs do, and unable to change the audit.
func TestDocumentedRoleOnlyAddsToTheAudit(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	app := r.role("app")
	for _, statement := range documentedGrants(t) {
		r.exec(strings.ReplaceAll(statement, "sluice_app", app))
	}
	store := openStore(t, asRole(r.url, app))
	if err := store.AppendAudit(t.Context(), []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "scraper", Event: audit.EventBreaker, Actor: "ada"}}); err != nil {
		t.Fatal(err)
	}
	refusesChanges(t, store, "permission denied", forged)
	health, err := store.Health(t.Context(), health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range health.Findings {
		if f.Check == "grant" && f.Severity != "" {
			t.Errorf("the documented role is not well: %+v", f)
		}
	}
}

// TestMigrationTakesBackTheRightToChangeTheAudit sets default privileges as older docs advised. They include the right
// to change the audit.
func TestMigrationTakesBackTheRightToChangeTheAudit(t *testing.T) {
	t.Parallel()
	r := &roles{T: t, url: pgtest.NewDatabase(t)}
	conn, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	app := fmt.Sprintf("%s_before", conn.Config().Database)
	for _, statement := range []string{
		"create role " + app + " login", "create schema sluice", "grant usage on schema sluice to " + app,
		"alter default privileges in schema sluice grant select, insert, update, delete on tables to " + app,
		"alter default privileges in schema sluice grant usage on sequences to " + app,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.owner = openStore(t, r.url)
	t.Cleanup(func() { r.dropRole(app) })
	store := openStore(t, asRole(r.url, app))
	if err := store.AppendAudit(t.Context(), []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "scraper", Event: audit.EventBreaker, Actor: "ada"}}); err != nil {
		t.Fatal(err)
	}
	refusesChanges(t, store, "permission denied", forged)
}

// TestOwnerDoesNotChangeTheAuditByMistake checks that triggers refuse changes of the audit, also by the owner.
func TestOwnerDoesNotChangeTheAuditByMistake(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	if err := store.AppendAudit(t.Context(), []sluice.AuditEntry{{Object: audit.ObjectQueue, Name: "scraper", Event: audit.EventBreaker, Actor: "ada"}}); err != nil {
		t.Fatal(err)
	}
	refusesChanges(t, store, "are only added")
}

// forged adds an entry with the highest number: no seal could cover those that follow, and a search would never end.
const forged = "insert into sluice.audit (seq, actor, object, event) overriding system value values (9223372036854775807, 'ada', 'queue', 'change')"

func refusesChanges(t *testing.T, store *postgres.Store, says string, more ...string) {
	t.Helper()
	for _, statement := range append(more, "update sluice.audit set actor = 'nobody@else'", "delete from sluice.audit", "truncate sluice.audit") {
		_, err := store.Pool().Exec(t.Context(), statement)
		var server *pgconn.PgError
		if !errors.As(err, &server) || server.Code != "42501" || !strings.Contains(server.Message, says) {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
}

// documentedGrants returns the statements of docs/operate.md for the role of programs.
func documentedGrants(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n(  grant usage on schema sluice.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/operate.md does not say what to grant")
	}
	var statements []string
	for line := range strings.Lines(string(block[1])) {
		if line = strings.TrimSuffix(strings.TrimSpace(line), ";"); line != "" {
			statements = append(statements, line)
		}
	}
	return statements
}
