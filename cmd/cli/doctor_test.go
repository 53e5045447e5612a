package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestDoctorSaysWhatToGrantToARoleThatMayNothing follows doctor's advice until the role has all rights that programs
// need.
func TestDoctorSaysWhatToGrantToARoleThatMayNothing(t *testing.T) {
	t.Parallel()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	at := pgtest.NewDatabase(t)
	if _, err := postgres.Migrate(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
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
	role := strings.TrimPrefix(parsed.Path, "/") + "_nobody"
	parsed.User = url.User(role)
	exec("create role " + role + " login")
	t.Cleanup(func() {
		exec("drop owned by " + role)
		exec("drop role " + role)
	})
	said := doctor(t, parsed.String())
	_, grants, found := strings.Cut(said, "for this role: ")
	if !found || !strings.Contains(said, "✖ grant") {
		t.Fatalf("doctor does not say what to grant:\n%s", said)
	}
	grants, _, _ = strings.Cut(grants, "; or, if it only reads: ")
	exec(strings.ReplaceAll(grants, "ROLE", role))
	if said = doctor(t, parsed.String()); strings.Contains(said, "✖") || !strings.Contains(said, fmt.Sprintf("the role %s may do all that programs do", role)) {
		t.Errorf("after the grants doctor says\n%s", said)
	}
}

// doctor returns the output of `sluice doctor` on a store.
func doctor(t *testing.T, at string) string {
	t.Helper()
	program, err := exec.LookPath("sluice") // the test program, under the name that the scripts use
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "doctor", "--db", at).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}

// TestDoctorWarnsOfAnAuditThatNobodySeals writes an entry that has waited 9 min and one that has waited 11 min, and
// seals them.
func TestDoctorWarnsOfAnAuditThatNobodySeals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, c := range []struct {
		waited time.Duration
		says   string
	}{{9 * time.Minute, "✔ audit"}, {11 * time.Minute, "✖ audit"}} {
		if _, err := store.DB().ExecContext(t.Context(), "insert into sluice_audit (seq, at, actor, object, name, event) values (?1, ?2, 'test', 'queue', 'q', 'change')",
			1000-int(c.waited.Minutes()), time.Now().Add(-c.waited).UnixMicro()); err != nil {
			t.Fatal(err)
		}
		if said := doctor(t, "sqlite:"+path); !strings.Contains(said, c.says) {
			t.Errorf("of an entry that has waited %s doctor says\n%s", c.waited, said)
		}
	}
	if _, code := sluiceAt(t, "sqlite:"+path, "upkeep --once"); code != 0 {
		t.Fatalf("upkeep ended with %d", code)
	}
	if said := doctor(t, "sqlite:"+path); !strings.Contains(said, "✔ audit") {
		t.Errorf("after sealing doctor says\n%s", said)
	}
}
