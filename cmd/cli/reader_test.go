package cli_test

import (
	"context"
	"errors"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestReaderRunsEveryCommandThatOnlyReads runs reading commands as a role that may only read, and some commands that
// this role may not run.
func TestReaderRunsEveryCommandThatOnlyReads(t *testing.T) {
	t.Parallel()
	at, reader := newReader(t)
	const id = "01890000-0000-7000-8000-000000000001"
	for _, args := range []string{
		"settings set mail rate=100/1m audit=full --reason test", "enqueue mail --id " + id + ` --tenant acme {"to":"Lovelace"}`,
		"tiers add gold --reason test", "tiers add iron --reason test", "tenants set acme --tier gold --reason test", "enqueue mail {}",
	} {
		if says, code := sluiceAt(t, at, args); code != 0 {
			t.Fatalf("%s ends with %d: %s", args, code, says)
		}
	}
	for _, args := range []string{
		"queues", "jobs", "jobs --queue mail -o json", "job " + id + " -o json", "why " + id, "stats", "holders", "tenants", "tiers",
		"audit", "audit verify", "audit keep", "alerts", "alerts rules", "dead ls", "dead groups", "forecast", "settings get mail",
		"settings scheduled mail", "operations", "runs mail", "migrate --preview", "forecast mail --by tenant", "export prometheus-rules",
	} {
		if says, code := sluiceAt(t, reader, args); code != 0 || strings.Contains(says, "permission denied") {
			t.Errorf("%s ends with %d: %s", args, code, says)
		}
	}
	if says, code := sluiceAt(t, reader, "job "+id); code != 0 || !strings.Contains(says, "this role may not read them") || strings.Contains(says, "Lovelace") {
		t.Errorf("the job is shown with %d: %s", code, says)
	}
	if says, _ := sluiceAt(t, reader, "doctor"); !strings.Contains(says, "only reads") || strings.Contains(says, "permission denied") || strings.Contains(says, "could not be looked at") || strings.Contains(says, "✖ grant") {
		t.Errorf("doctor says %s", says)
	}
	for _, args := range []string{"cancel " + id + " --reason test", "pause mail --reason test", "enqueue mail {}", "settings set mail rate=5/1s --reason test", "tenants set acme --tier iron --reason test", "alerts silence --all --for 1h --reason test"} {
		if says, code := sluiceAt(t, reader, args); code != 4 || !strings.Contains(says, "this role only reads") {
			t.Errorf("%s ends with %d: %s", args, code, says)
		}
	}
}

// newReader returns two URLs of a database: one as its owner, and one as a role that may only read.
func newReader(t *testing.T) (at, reader string) {
	t.Helper()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	at = pgtest.NewDatabase(t)
	if _, err := postgres.Migrate(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	role := strings.TrimPrefix(parsed.Path, "/") + "_reader"
	parsed.User = url.User(role)
	exec("create role " + role + " login")
	exec("select sluice.grant_reader('" + role + "')")
	t.Cleanup(func() {
		exec("drop owned by " + role)
		exec("drop role " + role)
		_ = owner.Close(context.WithoutCancel(t.Context()))
	})
	return at, parsed.String()
}

// sluiceAt runs a command on a store. Blanks separate its words.
func sluiceAt(t *testing.T, at, words string) (says string, code int) {
	t.Helper()
	program, err := exec.LookPath("sluice")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, append(strings.Fields(words), "--db", at)...).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		return string(out), failed.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return string(out), 0
}
