package move

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestMoveKeepsALogWithoutItsFile moves to and from a file that is not there, or is empty, beside its log. The log may hold
// the only copy of jobs, and SQLite would delete it.
func TestMoveKeepsALogWithoutItsFile(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]bool{"no file": false, "an empty file": true} {
		whole, orphaned := newFile(t), newFile(t)
		open(t, whole)
		path := strings.TrimPrefix(orphaned, liteScheme)
		if err := os.WriteFile(path+"-wal", []byte("jobs"), 0o600); err != nil {
			t.Fatal(err)
		}
		if empty {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, to := Run(t.Context(), whole, orphaned, Options{})
		if !errors.Is(to, sqlite.ErrFileReplaced) {
			t.Errorf("to %s: %v", name, to)
		}
		_, from := Run(t.Context(), orphaned, newFile(t), Options{})
		if !errors.Is(from, sluice.ErrNotMigrated) && !errors.Is(from, sluice.ErrUnavailable) {
			t.Errorf("from %s: %v", name, from)
		}
		if log, err := os.ReadFile(path + "-wal"); err != nil || string(log) != "jobs" {
			t.Errorf("%s: the log is %q, %v", name, log, err)
		}
	}
}
