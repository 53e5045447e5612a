package measure

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
)

// Hook collects what processes of the hook took.
type Hook struct {
	process, sanitize, spool, write, enqueue []time.Duration
}

// Build builds the program of the hook into a folder. It needs Go, and a folder of this module to work in.
func Build(ctx context.Context, folder string) (program string, err error) {
	program = filepath.Join(folder, "hook")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/sluice-queue/sluice/apps/conversations/cmd/hook").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the hook: %w: %s", err, out)
	}
	return program, nil
}

// starting lets one process at a time begin: this program starts them one by one in any case, and what one waits for the start of
// the others is not its own time.
var starting sync.Mutex

// Run runs one hook as a process of its own, as a caller does, and measures it from its start to its end.
func Run(ctx context.Context, program, db, log string, event []byte, more ...string) (took time.Duration, taken hook.Taken, err error) {
	args := append([]string{"-db", db, "-log", log, "-tell", "-fail-exit", "1"}, more...)
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = bytes.NewReader(event), &out
	starting.Lock()
	began := time.Now()
	err = cmd.Start()
	starting.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	took = time.Since(began)
	if err != nil {
		return took, taken, fmt.Errorf("the hook failed, see %s: %w", log, err)
	}
	if err := json.Unmarshal(out.Bytes(), &taken); err != nil {
		return took, taken, errors.Join(errors.New("the hook said something else than what it took"), err)
	}
	return took, taken, nil
}

// Add takes a process into account. What an event took in the store is known of those that came there.
func (h *Hook) Add(took time.Duration, taken hook.Taken) {
	h.process = append(h.process, took)
	h.sanitize = append(h.sanitize, taken.Sanitize)
	h.spool = append(h.spool, taken.Spool)
	if taken.Spooled {
		return
	}
	h.write = append(h.write, taken.Write)
	h.enqueue = append(h.enqueue, taken.Enqueue)
}

// Budgets are those of source design 3.
func (h *Hook) Budgets() []Budget {
	return []Budget{
		{Name: "hook, the whole process", Limit: 100 * time.Millisecond, Took: h.process},
		{Name: "  sanitize", Limit: 50 * time.Millisecond, Took: h.sanitize},
		{Name: "  spool, on the disk", Limit: 20 * time.Millisecond, Took: h.spool},
		{Name: "  write, commit and all", Limit: 20 * time.Millisecond, Took: h.write},
		{Name: "  enqueue, within it", Limit: 10 * time.Millisecond, Took: h.enqueue},
	}
}

// Never is the budget of callers who wait for nothing, whatever holds the store.
func (h *Hook) Never(trouble string) Budget {
	return Budget{Name: "hook, " + trouble, Limit: 100 * time.Millisecond, Took: h.process, Share: 0.99}
}

// Locked runs do while this process holds the file's write lock.
func Locked(ctx context.Context, db *sql.DB, do func() error) error {
	tx, err := db.BeginTx(ctx, nil) // immediate: see package sqlite
	if err != nil {
		return err
	}
	return errors.Join(do(), tx.Rollback())
}
