package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// patient is a store to be made ill and mended.
type patient struct {
	*testing.T
	path  string
	store *sqlite.Store
	path3 string // the folder in which the command sqlite3 is
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{T: t, path: filepath.Join(t.TempDir(), "it's $HOME.db"), path3: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(p.path3, "sqlite3")); err != nil {
		t.Fatal(err)
	}
	p.store = openStore(t, p.path)
	return p
}

// sqlite3 is what this program does under that name, as far as findings name it: it runs a statement on a file. With
// «hold» it leaves a transaction open until it is ended.
func sqlite3(args []string) int {
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(args[0], "?", "%3f"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	db.SetMaxOpenConns(1)
	for _, statement := range args[1:] {
		if statement == "hold" {
			fmt.Println("held")
			_, _ = io.Copy(io.Discard, os.Stdin)
			return 0
		}
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			fmt.Fprintln(os.Stderr, statement, err)
			return 1
		}
	}
	return 0
}

// trouble is one thing that can be wrong, and is mended by the command that the finding of it says.
type trouble struct {
	check    string
	severity sluice.Severity
	says     string
	thorough bool
	provoke  func(p *patient)
	// relieve does what is no command; nil: the command alone mends it.
	relieve func(p *patient)
}

func TestHealthFindsWhatIsWrongAndSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	provoked := make(map[string]bool)
	for _, one := range append(troubles(), systemTroubles()...) {
		provoked[one.check] = true
		t.Run(one.check+"/"+strings.ReplaceAll(one.says, " ", "_"), func(t *testing.T) {
			t.Parallel()
			newPatient(t).suffer(one)
		})
	}
	for _, check := range sluice.HealthChecks() {
		if len(systemTroubles()) > 0 && check.Kind == "sqlite" && !provoked[check.Name] && (check.Figure != "" || check.Otherwise != "") {
			t.Errorf("nothing provokes the check %q", check.Name)
		}
	}
}
func BenchmarkHealth(b *testing.B) {
	t := &testing.T{}
	_ = t
}
