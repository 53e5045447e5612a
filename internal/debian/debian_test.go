package debian

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// alone replaces apt-get. It fails while another one runs, as the real one does, which locks its lists.
const alone = `#!/bin/sh
mkdir "$(dirname "$0")/busy" || { echo "could not get lock" >&2; exit 100; }
sleep 0.05
rmdir "$(dirname "$0")/busy"
`

func standIn(t *testing.T, apt string) {
	t.Helper()
	folder := t.TempDir()
	for name, script := range map[string]string{"apt-get": apt, "sudo": "#!/bin/sh\nshift\nexec \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestThoseWhoInstallAtOnceTakeTurns(t *testing.T) {
	standIn(t, alone)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := Install("anything"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAFailedUpdateStopsNothingAndIsNamedWhenTheInstallFailsToo(t *testing.T) {
	standIn(t, "#!/bin/sh\n[ \"$1\" = install ]\n")
	if err := Install("anything"); err != nil {
		t.Error(err)
	}
	standIn(t, "#!/bin/sh\nexit 100\n")
	err := Install("anything")
	if err == nil || !strings.Contains(err.Error(), "apt-get update") || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("got %v; want an error that names both commands", err)
	}
}
