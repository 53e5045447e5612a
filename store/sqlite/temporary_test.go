package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// withoutTemporaryFolder starts this test program again, as on a read-only file system: SQLite takes the folder for
// temporary files, and cannot make one there, because the name of the file would be too long. So each test of this
// package fails if a statement needs a temporary file.
func withoutTemporaryFolder() error {
	const variable = "SQLITE_TMPDIR"
	if os.Getenv(variable) != "" {
		return nil
	}
	long := strings.Repeat("long", 60)
	folder := filepath.Join(os.TempDir(), "sluice-test-"+strconv.Itoa(os.Getuid()), long, long)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(program, os.Args, append(os.Environ(), variable+"="+folder))
}

// TestAStoreNeedsNoTemporaryFiles uses a database of the caller's own, which sets no pragma.
func TestAStoreNeedsNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	litetest.MakeFile(t, path)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), "create table own as with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000) select hex(randomblob(50)) as text from n order by text")
	if err == nil {
		t.Fatal("SQLite found a folder for temporary files")
	}
	store, err := sqlite.New(t.Context(), db, sqlite.Options{CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := sluice.NewClient(store, sluice.ClientOptions{})
	jobs := make([]sluice.NewJob, 3000)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "mail", Payload: []byte(`"` + strings.Repeat("x", 1000) + `"`)}
	}
	if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	for _, event := range []sluice.Event{sluice.EventRetry, sluice.EventComplete} {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 1000, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1000 {
			t.Fatalf("claimed %d jobs: %v", len(claimed.Jobs), err)
		}
		ends := make([]sluice.Settlement, len(claimed.Jobs))
		for i, c := range claimed.Jobs {
			ends[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Event: event, Error: "no", Holder: "h"}
		}
		if errs, err := store.Settle(t.Context(), ends); err != nil || errs[0] != nil {
			t.Fatalf("%s: %v, %v", event, err, errs[0])
		}
	}
}
