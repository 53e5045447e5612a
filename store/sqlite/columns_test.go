package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestStatementsNameListsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(sqlite.WithColumns(string(text)), "{{") && filepath.Base(file) != "columns.sql" {
			t.Errorf("%s names a list that columns.sql does not have", file)
		}
	}
}
