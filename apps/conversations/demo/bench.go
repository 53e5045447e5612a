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

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/measure"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
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
	db, err := records.Prepare(ctx, file)
	if err != nil {
		return err
	}
	if err := errors.Join(stages.Ensure(ctx, db.Client, stages.Presets()), db.Close()); err != nil {
		return err
	}
	var hooks measure.Hook
	m := newMaker(1)
	for i := range o.Events {
		took, taken, err := measure.Run(ctx, program, file, filepath.Join(folder, "hook.log"), m.event(i, o.Bytes))
		if err != nil {
			return err
		}
		hooks.Add(took, taken)
	}
	fmt.Fprintf(o.Out, "%d events of %d bytes, each with a dozen secrets, one process each:\n\n", o.Events, o.Bytes)
	if !measure.Print(o.Out, hooks.Budgets()) {
		return ErrCheck
	}
	return nil
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
