package records_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/schema"
)

// TestNoStatementButTheSchemaChangesTables checks the SQL files. SQLite has no roles that could forbid such statements.
func TestNoStatementButTheSchemaChangesTables(t *testing.T) {
	t.Parallel()
	changes := regexp.MustCompile(`(?i)\b(create|alter|drop|attach|vacuum|pragma|reindex)\b`)
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if changes.Match(text) != (filepath.Base(file) == "schema.sql") {
			t.Errorf("%s: %s", file, changes.Find(text))
		}
	}
}

func TestFileThatIsNotPreparedIsNotChanged(t *testing.T) {
	t.Parallel()
	if _, err := records.Open(t.Context(), filepath.Join(t.TempDir(), "c.db"), schema.New()); !errors.Is(err, sluice.ErrNotMigrated) {
		t.Errorf("opened: %v", err)
	}
}

func TestLearningsAreStoredOnceAndFoundByWords(t *testing.T) {
	t.Parallel()
	db, err := records.Prepare(t.Context(), filepath.Join(t.TempDir(), "c.db"), schema.New())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	l := records.Learning{Category: "pitfall", Title: "Pools", Content: "Never open a connection for each request.", Confidence: 0.8, Tags: []string{"go"}}
	for i := range 2 {
		err := db.Transact(t.Context(), func(tx records.Tx) error {
			_, added, err := tx.AddLearning(t.Context(), "c", l)
			if added != (i == 0) {
				t.Errorf("time %d: added %t", i, added)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for words, hits := range map[string]int{"connections": 1, "request connection": 1, "go": 1, "nothing": 0, "": 0, `" OR title:x *`: 0} {
		found, err := db.Search(t.Context(), words, 10)
		if err != nil || len(found) != hits {
			t.Errorf("%q: %d hits, %v", words, len(found), err)
		}
	}
}
