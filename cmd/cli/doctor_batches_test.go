package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestDoctorFindsABatchWhoseJobsSomebodyHasDeleted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b, err := batch.Open(t.Context(), store, batch.Batch{Name: "import"}, sluice.Act{By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		job := sluice.NewJob{Queue: "q", Payload: []byte("{}"), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}}
		if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if said, _ := cli.Run(t.Context(), "doctor", "--thorough", "--db", "sqlite:"+path); !strings.Contains(said, "1 batch looked at, whose counts fit their jobs") {
		t.Errorf("doctor says of a good batch:\n%s", said)
	}
	if _, err := store.DB().ExecContext(t.Context(), "delete from sluice_live where seq in (select max(seq) from sluice_live)"); err != nil {
		t.Fatal(err)
	}
	said, code := cli.Run(t.Context(), "doctor", "--thorough", "--db", "sqlite:"+path)
	if want := b.ID.String() + " counts 3 unfinished jobs, and has 2"; code != 7 || !strings.Contains(said, want) {
		t.Errorf("doctor exits with %d, and does not say %q:\n%s", code, want, said)
	}
	if said, _ := cli.Run(t.Context(), "doctor", "--db", "sqlite:"+path); strings.Contains(said, "wrong counts") {
		t.Errorf("doctor looks at batches without --thorough:\n%s", said)
	}
}
