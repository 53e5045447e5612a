// Package top is the terminal view of a system: what waits, what runs, who works, what is held back and what went
// wrong, on one screen of 80 columns and 24 lines, with keys to pause, resume and inspect queues.
package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluice-queue/sluice"
)

// Options say what is looked at, and how. Client, Store and Queues are required.
type Options struct {
	Client *sluice.Client
	// Queues gives the queues that are shown, by name, and whether there are more.
	Queues func(ctx context.Context) (queues []sluice.Queue, more bool, err error)
	// Store is looked at by Client, too.
	Store sluice.Store
	// Label is how the store is called on the screen, without a password.
	Label string
	// Every is how often the store is looked at. Default 2 s.
	Every time.Duration
	// Window is over how long rates and times are told. Default 1 min.
	Window time.Duration
	// By is who acts, for the audit.
	By string
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
	// Width and Height are those of the terminal; 0: it says so itself.
	Width, Height int
}

// Run shows the view until the person leaves or ctx ends, and returns nil then.
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
