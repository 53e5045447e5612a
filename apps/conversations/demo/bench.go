package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/measure"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

// BenchOptions adjust a measurement.
type BenchOptions struct {
	// Events are how many processes of the hook, each with an event of so many Bytes.
	Events, Bytes int
	Out           io.Writer
}

// Bench measures the hook against its budgets: one process after the other, each with its start and its end.
func Bench(ctx context.Context, o BenchOptions) (err error) {
	folder, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program, err := measure.Build(ctx, folder)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "conversations.db")
	db, err := records.Prepare(ctx, file, schema.New())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := stages.Ensure(ctx, db.Client, stages.Presets()); err != nil {
		return err
	}
	b := bencher{BenchOptions: o, program: program, file: file, maker: newMaker(1)}
	alone, err := b.run(ctx, 1, o.Bytes)
	if err != nil {
		return err
	}
	many, err := b.run(ctx, benchAtOnce, min(o.Bytes, benchPrompt))
	if err != nil {
		return err
	}
	var locked *measure.Hook
	err = measure.Locked(ctx, db.Store.DB(), func() error {
		locked, err = b.run(ctx, 1, o.Bytes)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%d events of %d bytes, each with a dozen secrets, one process each; and so many again in trouble:\n\n", o.Events, o.Bytes)
	budgets := append(alone.Budgets(), locked.Never("while the file is locked"), many.Never(fmt.Sprintf("%d at once, 1 KB", benchAtOnce)))
	if !measure.Print(o.Out, budgets) {
		return ErrCheck
	}
	return nil
}

// benchAtOnce is how many callers begin in one moment, each with an event of benchPrompt bytes.
const (
	benchAtOnce = 20
	benchPrompt = 1 << 10
)

// bencher runs hooks on one file.
type bencher struct {
	BenchOptions
	program, file string
	maker         maker
}

// run runs hooks with events of a length, so many at once, and waits for them before the next begin.
func (b *bencher) run(ctx context.Context, atOnce, length int) (*measure.Hook, error) {
	var hooks measure.Hook
	for begun := 0; begun < b.Events; begun += atOnce {
		var mu sync.Mutex
		var failed error
		var callers sync.WaitGroup
		for i := range min(atOnce, b.Events-begun) {
			event := b.maker.event(begun+i, length)
			callers.Go(func() {
				took, taken, err := measure.Run(ctx, b.program, b.file, b.file+".log", event)
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
				hooks.Add(took, taken)
			})
		}
		if callers.Wait(); failed != nil {
			return nil, failed
		}
	}
	return &hooks, nil
}

// event is one of a length, with a secret of each kind in it.
func (m maker) event(number, length int) []byte {
	var text strings.Builder
	for kind := range 14 {
		sentence, _ := m.secret(number + kind)
		text.WriteString(sentence + "\n")
	}
	for text.Len() < length {
		fmt.Fprintf(&text, fixes[text.Len()%len(fixes)]+" See step %d of the plan: if err != nil { return err }\n", m.of(lower, 8), text.Len())
	}
	event, _ := json.Marshal(map[string]string{ // strings can be written
		"event": "UserPromptSubmit", "conversation_id": sluice.NewID().String(), "content": text.String()[:max(length, 1)],
	})
	return event
}
