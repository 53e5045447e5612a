package sqlite_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sluice-queue/sluice"
)

// newFunctions finds functions that SQLite has only since a version after 3.40.
var newFunctions = regexp.MustCompile(`(?i)\b(octet_length|concat|concat_ws|string_agg|timediff|unhex|if|jsonb\w*|unistr\w*)\s*\(`)

// TestChecksOfTheSchemaNeedNoNewLibrary finds functions that the SQLite of a distribution may lack. Such a SQLite
// cannot even vacuum a file whose checks name one of them.
func TestChecksOfTheSchemaNeedNoNewLibrary(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	rows, err := store.DB().QueryContext(t.Context(), "select name, sql from sqlite_master where sql is not null")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		if late := newFunctions.FindString(text); late != "" {
			t.Errorf("%s needs %s of a newer SQLite than 3.40: %s", name, late, text)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestShellOfTheSystemWritesAndVacuumsAFile runs the commands of an operator in Debian's sqlite3.
func TestShellOfTheSystemWritesAndVacuumsAFile(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Fatalf("install SQLite's shell, as `make test` does on Debian: %v", err)
	}
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openStore(t, path)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType = "temporal", "Pay"
	if _, err := client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "ada", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"update sluice_queue set run_type = 'Refund', max_attempts = 7", "vacuum", "pragma integrity_check",
	} {
		if out, err := exec.CommandContext(t.Context(), shell, path, statement).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", statement, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), shell, path, "update sluice_queue set run_ref = printf('%.201c', 'a')").CombinedOutput(); err == nil {
		t.Errorf("201 bytes are taken: %s", out)
	}
	again := sluice.NewClient(openStore(t, path), sluice.ClientOptions{})
	if queue, err := again.Queue(t.Context(), "mail"); err != nil || queue.Settings.Engine != "temporal" || queue.Settings.RunType != "Refund" {
		t.Errorf("the queue has the engine %q and the type %q: %v", queue.Settings.Engine, queue.Settings.RunType, err)
	}
}
