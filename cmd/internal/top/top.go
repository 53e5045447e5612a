// Package top is the terminal view of a system on one screen of 80 columns and 24 lines. The screen
// shows waiting and running jobs, processes, limits that hold jobs back, and failures. Keys pause,
// resume and inspect queues.
//
// Begin with [Run] and its [Options]. model.go handles messages and keys, read.go reads the store,
// and view.go and panes.go draw.
//
// Read next: docs/operate.md, and the command `sluice top` in package cli.
package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluice-queue/sluice"
)

// Options configure the view. Client, Store and Queues are required.
type Options struct {
	Client *sluice.Client
	// Store is the store of Client.
	Store sluice.Store
	// Queues returns the queues to show, by name, and whether there are more.
	Queues func(ctx context.Context) (queues []sluice.Queue, more bool, err error)
	// Label is the name of the store on the screen, without a password.
	Label string
	// Every is the time between two reads of the store. Default 2 s.
	Every time.Duration
	// Window is the time over which rates and times are computed. Default 1 min.
	Window time.Duration
	// By is the actor for the audit.
	By string
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
	// Width and Height are the size of the terminal. 0: the terminal reports its size.
	Width, Height int
}

// Run shows the view until the person leaves or ctx ends. Then it returns nil.
func Run(ctx context.Context, options Options) error {
	if options.Every <= 0 {
		options.Every = 2 * time.Second
	}
	if options.Window <= 0 {
		options.Window = time.Minute
	}
	settings := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(options.In), tea.WithOutput(options.Out), tea.WithoutSignalHandler()}
	if options.Width > 0 {
		settings = append(settings, tea.WithWindowSize(options.Width, options.Height))
	}
	_, err := tea.NewProgram(newModel(ctx, options), settings...).Run()
	if err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return err
	}
	return nil
}
