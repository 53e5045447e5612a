package sqlite_test

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestNextVersionMigratesAFileOfThisOne changes the version of this process, so no other test runs beside it.
func TestNextVersionMigratesAFileOfThisOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openStore(t, path)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	enqueue := func() error {
		_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		return err
	}
	if err := enqueue(); err != nil {
		t.Fatal(err)
	}
	stored := func(want int, what, query string) {
		t.Helper()
		var got int
		if err := store.DB().QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", what, got, want, err)
		}
	}
	moods := "select count(*) from sqlite_master where name = 'sluice_mood'"
	const makesMood = "create table sluice_mood (job integer primary key, mood text not null); insert into sluice_mood select seq, 'new' from sluice_job;"

	undo := sqlite.KnowOneStepMore(makesMood+" insert into sluice_mood values (null, null)", 1)
	if _, err := sqlite.Migrate(t.Context(), path); err == nil || !strings.Contains(err.Error(), "step 2 (of the next version)") {
		t.Errorf("a step that fails gives %v", err)
	}
	stored(0, "tables of a step that failed", moods)
	stored(1, "steps after one that failed", "select count(*) from sluice_migration")
	undo()

	undo = sqlite.KnowOneStepMore(makesMood, 1)
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sluice.ErrNotMigrated) {
		t.Errorf("the next version opens a file of this one: %v", err)
	}
	ran := make([][]sluice.Migration, 8)
	errs := make([]error, len(ran))
	var wait sync.WaitGroup
	for i := range ran {
		wait.Go(func() { ran[i], errs[i] = sqlite.Migrate(t.Context(), path) })
	}
	wait.Wait()
	steps := 0
	for i := range ran {
		steps += len(ran[i])
	}
	if err := errors.Join(errs...); err != nil || steps != 1 {
		t.Errorf("8 processes of the next version ran %d steps, want 1: %v", steps, err)
	}
	stored(1, "rows that the step made of old ones", "select count(*) from sluice_mood")
	undo()

	if err := enqueue(); err != nil {
		t.Errorf("a program of this version, beside the step that works with it: %v", err)
	}
	if again, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true}); err != nil {
		t.Errorf("this version opens a file of the next one: %v", err)
	} else {
		_ = again.Close()
	}

	undo = sqlite.KnowOneStepMore(makesMood+" -- changed", 1)
	if _, err := sqlite.Migrate(t.Context(), path); err == nil || !strings.Contains(err.Error(), "the file was changed after it was released") {
		t.Errorf("a step whose text was changed gives %v", err)
	}
	undo()
}

func TestSchemaExplainsEveryColumn(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	rows, err := store.DB().QueryContext(t.Context(), `select m.name, m.sql, x.name from sqlite_master m, pragma_table_xinfo(m.name) x
		where m.type = 'table' and m.name like 'sluice!_%' escape '!'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns := 0
	for rows.Next() {
		var table, text, column string
		if err := rows.Scan(&table, &text, &column); err != nil {
			t.Fatal(err)
		}
		columns++
		if !regexp.MustCompile(`(?m)^ +` + column + ` .* -- \S`).MatchString(text) {
			t.Errorf("the column %s of %s has no comment", column, table)
		}
	}
	if err := rows.Err(); err != nil || columns < 250 {
		t.Errorf("%d columns, %v", columns, err)
	}
}
