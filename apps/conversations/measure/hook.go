package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
)

// Hook collects what processes of the hook took.
type Hook struct {
	process, sanitize, write, enqueue []time.Duration
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

// Run runs one hook as a process of its own, as a caller does, and measures it from its start to its end.
func Run(ctx context.Context, program, db, log string, event []byte, more ...string) (took time.Duration, taken hook.Taken, err error) {
	args := append([]string{"-db", db, "-log", log, "-tell", "-fail-exit", "1"}, more...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = bytes.NewReader(event)
	began := time.Now()
	out, err := cmd.Output()
	took = time.Since(began)
	if err != nil {
		return took, taken, fmt.Errorf("the hook failed, see %s: %w", log, err)
	}
	if err := json.Unmarshal(out, &taken); err != nil {
		return took, taken, errors.Join(errors.New("the hook said something else than what it took"), err)
	}
	return took, taken, nil
}

// Add takes a process into account.
func (h *Hook) Add(took time.Duration, taken hook.Taken) {
	h.process = append(h.process, took)
	h.sanitize = append(h.sanitize, taken.Sanitize)
	h.write = append(h.write, taken.Write)
	h.enqueue = append(h.enqueue, taken.Enqueue)
}

// Budgets are those of source design 3.
func (h *Hook) Budgets() []Budget {
	return []Budget{
		{"hook, the whole process", 100 * time.Millisecond, h.process},
		{"  sanitize", 50 * time.Millisecond, h.sanitize},
		{"  write, commit and all", 20 * time.Millisecond, h.write},
		{"  enqueue, within it", 10 * time.Millisecond, h.enqueue},
	}
}
