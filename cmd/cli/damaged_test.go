package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
)

func TestADamagedFileIsAStoreThatCannotBeReadAndTheErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	if printed, code := cli.Run(t.Context(), "migrate", "--db", "sqlite:"+path); code != 0 {
		t.Fatal(printed)
	}
	if err := os.Truncate(path, 20_000); err != nil {
		t.Fatal(err)
	}
	printed, code := cli.Run(t.Context(), "jobs", "--db", "sqlite:"+path)
	if code != 5 || !strings.Contains(printed, "the file is damaged") || !strings.Contains(printed, "restore a backup") {
		t.Errorf("exit code %d: %s", code, printed)
	}
}
