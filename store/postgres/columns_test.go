package postgres_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/store/postgres"
)

func TestStatementsNameListsThatExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		text, err := postgres.StatementOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "{{") && name != "columns.sql" {
			t.Errorf("%s names a list that columns.sql does not have", name)
		}
	}
}
