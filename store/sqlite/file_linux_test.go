package sqlite_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// startChild starts a process that works on a file. The returned function makes the process enqueue a job.
func startChild(t *testing.T, path string) (enqueue func() string) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), childVariable+"="+path)
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = process.Wait()
	})
	answers := bufio.NewScanner(out)
	answer := func() string {
		if !answers.Scan() {
			t.Fatalf("the process ended: %v", answers.Err())
		}
		return answers.Text()
	}
	if said := answer(); said != "open" {
		t.Fatal(said)
	}
	return func() string {
		if _, err := io.WriteString(in, "enqueue\n"); err != nil {
			t.Fatal(err)
		}
		return answer()
	}
}

func TestFileThatIsDeletedOrReplacedUnderAProcessTakesNoJobs(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]string{
		"all deleted":          "rm jobs.db*",
		"the file deleted":     "rm jobs.db",
		"the log deleted":      "rm jobs.db-wal",
		"the index deleted":    "rm jobs.db-shm",
		"a backup in place":    "cp backup.db restored.db && mv restored.db jobs.db",
		"all moved":            "mkdir away && mv jobs.db* away/",
		"the folder moved off": "mkdir -p ../gone && mv jobs.db jobs.db-wal jobs.db-shm ../gone/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			backup := openStore(t, filepath.Join(folder, "backup.db"))
			if err := backup.Close(); err != nil {
				t.Fatal(err)
			}
			enqueue := startChild(t, filepath.Join(folder, "jobs.db"))
			if said := enqueue(); said != "ok" {
				t.Fatal(said)
			}
			shell := exec.CommandContext(t.Context(), "sh", "-c", harm)
			shell.Dir = folder
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for range 2 {
				if said := enqueue(); said != "refused" {
					t.Errorf("after `%s` the process says %q to a new job", harm, said)
				}
			}
		})
	}
}

func TestFileThatIsGoneRefusesClaimsAndReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store := openStore(t, path)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	id := enqueueOne(t, client)
	tx, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	_, err = store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if !errors.Is(err, sqlite.ErrFileReplaced) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a claim: %v", err)
	}
	time.Sleep(sqlite.FileCheckInterval) // reads check the file once in this interval
	if _, err = client.Job(t.Context(), id); !errors.Is(err, sqlite.ErrFileReplaced) {
		t.Errorf("a read: %v", err)
	}
	if err := store.CheckSchema(t.Context()); !errors.Is(err, sqlite.ErrFileReplaced) {
		t.Errorf("the look by which a server is ready: %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	time.Sleep(sqlite.FileCheckInterval)
	if got := claimOne(t, store); got.ID != id {
		t.Errorf("claimed %s after the file was put back", got.ID)
	}
}

func TestNewFileBesideAnOldLogIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	enqueueOne(t, sluice.NewClient(openStore(t, path), sluice.ClientOptions{}))
	crashed := filepath.Join(t.TempDir(), "jobs.db") // the file as a killed process leaves it
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(crashed+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, empty := range []bool{false, true} {
		if empty {
			if err := os.WriteFile(crashed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := sqlite.Open(t.Context(), crashed, sqlite.Options{Migrate: true})
		if !errors.Is(err, sqlite.ErrFileReplaced) || !strings.Contains(err.Error(), crashed+"-wal") {
			t.Errorf("empty %v: %v", empty, err)
		}
		if kept, err := os.ReadFile(crashed + "-wal"); err != nil || len(kept) != len(log) {
			t.Errorf("empty %v: the log has %d bytes of %d, %v", empty, len(kept), len(log), err)
		}
	}
	if _, err := sqlite.Migrate(t.Context(), crashed); !errors.Is(err, sqlite.ErrFileReplaced) {
		t.Errorf("migrate: %v", err)
	}
}

func TestFilesOfAStoreAreTheirOwnersAlone(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "jobs.db")
	enqueueOne(t, sluice.NewClient(openStore(t, path), sluice.ClientOptions{}))
	for _, beside := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + beside)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("jobs.db%s has the rights %o", beside, mode)
		}
	}
}

func TestTransactionOfAnotherFileIsRefused(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	other, _ := newStore(t)
	enqueueOne(t, client)
	claim := claimOne(t, store)
	elsewhere, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = elsewhere.Close() })
	try := func(name string, tx sqlite.Tx) {
		_, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		if !errors.Is(err, sluice.ErrForeignTx) {
			t.Errorf("%s: enqueue: %v", name, err)
		}
	}
	tx, err := elsewhere.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	try("another database", tx)
	if err := sqlite.CompleteTx(t.Context(), tx, claim, nil); !errors.Is(err, sluice.ErrForeignTx) || claim.SettledInTx() {
		t.Errorf("complete: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	try("no transaction at all", store.DB())
	err = other.Transact(t.Context(), func(tx sqlite.Tx) error {
		try("another store's", tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLocksOutliveAnotherDescriptorOfTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	enqueueOne(t, sluice.NewClient(openStore(t, path), sluice.ClientOptions{}))
	if _, err := os.ReadFile(path); err != nil { // a backup or a checksum reads the file, and then closes its descriptor
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(locks), fmt.Sprintf(":%d 1073741826 1073742335", stat.Ino)) {
		t.Errorf("the lock on the file is gone after another descriptor of it was closed")
	}
}
