package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
)

// TakeIn stores the events that wait, in their order, until none is left or one cannot be stored now. It may be ended at any
// point, and be called by many processes at once: an event is stored and enqueued once, and its file is removed afterwards.
// A file that is torn, or that the store refuses whenever it comes, is set aside and logged. Stored hears of each event that
// was stored; nil: nobody does.
func (s Spool) TakeIn(ctx context.Context, db *records.Database, logger *slog.Logger, stored func(Taken)) error {
	if stored == nil {
		stored = func(Taken) {}
	}
	for {
		files, unseen := s.waiting()
		if len(files) == 0 {
			return unseen
		}
		if err := ready(ctx, db); err != nil {
			return err
		}
		for _, file := range files {
			if err := takeInFile(ctx, db, logger, file, stored); err != nil {
				return fmt.Errorf("take in %s: %w", file, err)
			}
		}
	}
}

func takeInFile(ctx context.Context, db *records.Database, logger *slog.Logger, file string, stored func(Taken)) error {
	event, there, err := read(file)
	if err == nil && !there {
		return nil
	}
	var taken Taken
	if err == nil {
		taken, err = store(ctx, db, event)
	}
	if errors.Is(err, ErrMalformed) || errors.Is(err, sluice.ErrInvalid) {
		logger.Error("event set aside", "file", file, "error", err)
		return setAside(file)
	}
	if err != nil {
		return err
	}
	stored(taken)
	return forget(file)
}

// ready reads the settings and compiles the payload's schema, before others have to wait for this one's transaction.
func ready(ctx context.Context, db *records.Database) error {
	queue, err := db.Client.Queue(ctx, stages.Validation.Name())
	if err != nil || queue.Settings.PayloadSchema == "" {
		return err
	}
	return db.Checker.Compile(queue.Settings.PayloadSchema)
}
